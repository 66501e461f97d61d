"""Listen queues overflowed and dropped connections.

Why it matters: A program accepts connections too slowly. A dropped connection request is retried after one second,
then two, then four. Starts of large jobs and bursts of inference requests take seconds longer for no visible reason.
Confirm manually: nstat -az TcpExtListenOverflows TcpExtListenDrops; ss -ltn
Side effects of the fix: None.
Sources: https://www.kernel.org/doc/html/latest/networking/snmp_counter.html
"""

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.checks.shared.network_links import share

LIMIT = 0.001


def observe(facts: FactsView) -> str:
    dropped = facts["tcp.listen"]["overflows"]
    requests = facts["tcp.segments"]["accepted"] + dropped
    if dropped < 100 or dropped < LIMIT * requests:
        return ""
    return share(dropped, requests) + " connection requests dropped"


CHECK = Check(
    needs=("tcp.listen", "tcp.segments"),
    observe=observe,
    accept=Empty("fewer than one in a thousand since boot"),
    remedy=manual(
        "ss -ltn: a Recv-Q near Send-Q identifies the program. Raise its backlog and net.core.somaxconn (sysctl -w "
        "net.core.somaxconn=65535), or give it more accepting threads."
    ),
    severity="low",
    name="listen queues",
    cost="setting",
)
