"""One TCP connection may not grow its receive buffer to what the link needs.

Why it matters: The third number of tcp_rmem is how far the kernel may grow a connection's receive window. Below bandwidth
times round trip one flow cannot fill the link, whatever the sender does; checkpoints, datasets over TCP and NCCL's
socket transport feel it. The usual 6 MiB allow at most 50 Gb/s at 1 ms.
Confirm by hand: sysctl net.ipv4.tcp_rmem
Side effects of the fix: Busy connections may hold more kernel memory, up to net.ipv4.tcp_mem in all. Only the third
number is raised: the middle one is what every new socket starts with.
Sources: https://docs.kernel.org/networking/ip-sysctl.html ; https://fasterdata.es.net/host-tuning/linux/
"""

from typing import Any

from nodetune.expect import AtLeast
from nodetune.model import Check, Ref
from nodetune.remedies import sysctl
from nodetune.view import View

NOW, NEXT_BOOT = "sysctl.net.ipv4.tcp_rmem", "persisted.sysctl.net.ipv4.tcp_rmem"


def observe(facts: View) -> dict[str, Any]:
    """The largest size, as it is and as the next boot sets it (where a file says)."""
    largest = {"now": facts[NOW][2]}
    persisted = facts.readable(NEXT_BOOT)
    if persisted:
        largest[f"next boot ({persisted['file']})"] = persisted["value"][2]
    return largest


CHECK = Check(
    needs=(NOW, NEXT_BOOT),
    observe=observe,
    accept=AtLeast(Ref("derived.tcp_buffer_bytes")),
    set=Ref("derived.tcp_rmem"),
    unit="bytes",
    remedy=sysctl("net.ipv4.tcp_rmem"),
    severity="low",
)
