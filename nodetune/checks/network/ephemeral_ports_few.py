"""net.ipv4.ip_local_port_range is too narrow.

Why it matters: Every rank opens many sockets to many peers, and each connection to the same service needs its own
local port. A range narrowed for a firewall to fewer than a thousand ports runs out in large jobs: "Cannot assign
requested address".
Confirm manually: sysctl net.ipv4.ip_local_port_range
Side effects of the fix: A firewall must admit the wider range between the nodes of a job.
Sources: https://docs.kernel.org/networking/ip-sysctl.html ;
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/networking_troubleshooting.html
"""

from nodetune.api import AtLeast, Check, FactsView, manual


def observe(facts: FactsView) -> int:
    first, last = facts["sysctl.net.ipv4.ip_local_port_range"]
    return int(last) - int(first) + 1


CHECK = Check(
    needs=("sysctl.net.ipv4.ip_local_port_range",),
    observe=observe,
    accept=AtLeast(1000),
    unit="ports",
    remedy=manual(
        "Open the range 32768-60999 between the nodes in the firewall, then: sysctl -w "
        "net.ipv4.ip_local_port_range='32768 60999' and the same line in a file in /etc/sysctl.d."
    ),
    severity="low",
    name="ephemeral ports",
    cost="setting",
)
