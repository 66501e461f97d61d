"""TCP is short of memory (net.ipv4.tcp_mem).

Why it matters: Beyond the second number of net.ipv4.tcp_mem (in pages), the kernel shrinks the windows of all
connections at once. Beyond the third, it drops data. Hundreds of busy connections with large buffers reach these
limits.
Confirm manually: grep TCP: /proc/net/sockstat; sysctl net.ipv4.tcp_mem; nstat -az TcpExtTCPMemoryPressures
Side effects of the fix: TCP may take more of the host's memory.
Sources: https://docs.kernel.org/networking/ip-sysctl.html (tcp_mem)
"""

from nodetune.api import Check, Empty, FactsView, manual


def observe(facts: FactsView) -> str:
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
        "ss -tm shows which sockets hold the memory. Raise the limits (three numbers, in pages): sysctl -w "
        "net.ipv4.tcp_mem='...' with twice the present values, and keep them in a file in /etc/sysctl.d."
    ),
    severity="low",
    name="TCP memory",
    cost="setting",
)
