"""The maximum of net.ipv4.tcp_wmem is too low for the link.

Why it matters: The third number of tcp_wmem limits how much unacknowledged data the kernel may keep for a connection.
Below bandwidth times round-trip time, one flow cannot fill the link, whatever the receiver does. This slows
checkpoints, datasets over TCP and NCCL's socket transport. The usual 4 MiB allow at most 34 Gb/s at 1 ms.
Confirm manually: sysctl net.ipv4.tcp_wmem
Side effects of the fix: Busy connections may hold more kernel memory, up to net.ipv4.tcp_mem in all. Only the third
number is raised: the middle one is what every new socket starts with.
Sources: https://docs.kernel.org/networking/ip-sysctl.html ; https://fasterdata.es.net/host-tuning/linux/
"""

from nodetune.api import AtLeast, Check, Ref, sysctl
from nodetune.checks.network import _buffers

CHECK = Check(
    needs=_buffers.needs("tcp_wmem"),
    observe=_buffers.largest("tcp_wmem"),
    accept=AtLeast(Ref("derived.tcp_buffer_bytes")),
    set=Ref("derived.tcp_wmem"),
    unit="bytes",
    remedy=sysctl("net.ipv4.tcp_wmem"),
    part_of="tcp-rmem-below-bandwidth",
    severity="low",
)
