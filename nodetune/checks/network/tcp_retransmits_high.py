"""TCP sends many segments twice.

Why it matters: Inside a data centre less than one segment in ten thousand is lost. More means drops in a switch, a
bad cable, pause storms or an MTU that does not fit; each loss halves a connection's window and stalls small
messages for 200 ms. The counters run since boot, so a new fault shows late.
Confirm by hand: nstat -az TcpOutSegs TcpRetransSegs; ss -ti | grep -o 'retrans:[^ ]*'
Side effects of the fix: None: finding the cause is the fix.
Sources: https://www.kernel.org/doc/html/latest/networking/snmp_counter.html ;
https://fasterdata.es.net/network-tuning/tcp-issues-explained/packet-loss/
"""

from nodetune.checks.network._links import share
from nodetune.expect import Empty
from nodetune.model import Absent, Check, Value
from nodetune.remedies import manual
from nodetune.view import View

ENOUGH_SEGMENTS = 1_000_000
LIMIT = 0.005


def observe(facts: View) -> Value | Absent:
    seen = facts["tcp.segments"]
    if seen["sent"] < ENOUGH_SEGMENTS:
        return Absent("too few segments were sent since boot to judge")
    bad = seen["retransmitted"] > LIMIT * seen["sent"]
    return Value(share(seen["retransmitted"], seen["sent"]) + " segments sent again" if bad else "")


CHECK = Check(
    needs=("tcp.segments",),
    observe=observe,
    accept=Empty("at most 0.5 % since boot"),
    remedy=manual(
        "ss -ti shows which peers lose segments; compare the error and drop counters of the links on the way (ip -s -s "
        "link, the switch ports), the MTU (ping -M do -s 8972 PEER) and the cables."
    ),
    severity="low",
)
