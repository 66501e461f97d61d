"""Few local ports are left for outgoing connections.

Why it matters: Every rank opens many sockets to many peers, and each needs a local port of its own towards the same
service. A range that was narrowed for a firewall to less than a thousand runs out in large jobs: "Cannot assign
requested address".
Confirm by hand: sysctl net.ipv4.ip_local_port_range
Side effects of the fix: A firewall must admit the wider range between the nodes of a job.
Sources: https://docs.kernel.org/networking/ip-sysctl.html ;
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/networking_troubleshooting.html
"""

from nodetune.expect import AtLeast
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> int:
    first, last = facts["sysctl.net.ipv4.ip_local_port_range"]
    return int(last) - int(first) + 1


CHECK = Check(
    needs=("sysctl.net.ipv4.ip_local_port_range",),
    observe=observe,
    accept=AtLeast(1000),
    unit="ports",
    remedy=manual(
        "Open the range 32768-60999 between the nodes in the firewall, then: sysctl -w "
        "net.ipv4.ip_local_port_range='32768 60999' and the same line in a file of /etc/sysctl.d."
    ),
    severity="low",
)
