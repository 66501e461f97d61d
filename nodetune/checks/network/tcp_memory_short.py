"""TCP is short of the memory that it may use.

Why it matters: Beyond the second number of net.ipv4.tcp_mem (in pages) the kernel shrinks the windows of all
connections at once; beyond the third it drops data. Hundreds of busy connections with large buffers get there.
Confirm by hand: grep TCP: /proc/net/sockstat; sysctl net.ipv4.tcp_mem; nstat -az TcpExtTCPMemoryPressures
Side effects of the fix: TCP may take more of the host's memory.
Sources: https://docs.kernel.org/networking/ip-sysctl.html (tcp_mem)
"""

from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> str:
    memory = facts["tcp.memory"]
    pages, pressure, times = memory["pages"], memory["limits"][1], memory["pressures"] or 0
    if pages > pressure:
        return f"{pages} pages in use, pressure begins at {pressure}"
    return f"under pressure {times} times since boot" if times else ""


CHECK = Check(
    needs=("tcp.memory",),
    observe=observe,
    accept=Empty("never under memory pressure"),
    remedy=manual(
        "ss -tm shows who holds the memory. Raise the limits (three numbers, in pages): sysctl -w net.ipv4.tcp_mem='...' "
        "with twice the present values, and keep them in a file of /etc/sysctl.d."
    ),
    severity="low",
)
