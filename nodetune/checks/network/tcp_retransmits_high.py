"""The TCP retransmission rate is high.

Why it matters: Inside a data centre, less than one segment in ten thousand is lost. More means drops in a switch, a
bad cable, pause storms or a wrong MTU. Each loss halves a connection's window and stalls small messages for 200 ms.
The counters run since boot, so a new fault shows late.
Confirm manually: nstat -az TcpOutSegs TcpRetransSegs; ss -ti | grep -o 'retrans:[^ ]*'
Side effects of the fix: None: finding the cause is the fix.
Sources: https://www.kernel.org/doc/html/latest/networking/snmp_counter.html ;
https://fasterdata.es.net/network-tuning/tcp-issues-explained/packet-loss/
"""

from __future__ import annotations

from nodetune.api import Absent, Check, Empty, FactsView, Value, manual
from nodetune.checks.shared.network_links import share

ENOUGH_SEGMENTS = 1_000_000
LIMIT = 0.005


def observe(facts: FactsView) -> Value | Absent:
    segments = facts["tcp.segments"]
    if segments["sent"] < ENOUGH_SEGMENTS:
        return Absent("too few segments were sent since boot to judge")
    bad = segments["retransmitted"] > LIMIT * segments["sent"]
    return Value(share(segments["retransmitted"], segments["sent"]) + " segments retransmitted" if bad else "")


CHECK = Check(
    needs=("tcp.segments",),
    observe=observe,
    accept=Empty("at most 0.5 % since boot"),
    remedy=manual(
        "ss -ti shows which peers lose segments. Compare the error and drop counters of the links on the path (ip -s "
        "-s link, the switch ports), the MTU (ping -M do -s 8972 PEER) and the cables."
    ),
    severity="low",
    name="TCP",
)
