"""The maximum of net.ipv4.tcp_rmem is too low for the link.

Why it matters: The third number of tcp_rmem limits how far the kernel may grow the receive window of a connection.
Below bandwidth times round-trip time, one flow cannot fill the link, whatever the sender does. This slows checkpoints,
datasets over TCP and NCCL's socket transport. The usual 6 MiB allow at most 50 Gb/s at 1 ms.
Confirm manually: sysctl net.ipv4.tcp_rmem
Side effects of the fix: Busy connections may hold more kernel memory, up to net.ipv4.tcp_mem in all. Only the third
number is raised: the middle one is what every new socket starts with.
Sources: https://docs.kernel.org/networking/ip-sysctl.html ; https://fasterdata.es.net/host-tuning/linux/
"""

from nodetune.api import AtLeast, Check, Ref, sysctl
from nodetune.checks.network import _buffers

CHECK = Check(
    needs=_buffers.needs("tcp_rmem"),
    observe=_buffers.largest("tcp_rmem"),
    accept=AtLeast(Ref("derived.tcp_buffer_bytes")),
    set=Ref("derived.tcp_rmem"),
    unit="bytes",
    remedy=sysctl("net.ipv4.tcp_rmem"),
    severity="low",
)
