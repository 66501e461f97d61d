"""net.core.rmem_max is too low for the link.

Why it matters: net.core.rmem_max caps the receive buffer that a program can request with SO_RCVBUF
(NCCL_SOCKET_RCVBUF, iperf3 -w, storage clients). A buffer smaller than bandwidth times round-trip time leaves the link
idle between acknowledgements. TCP autotuning obeys tcp_rmem instead, and RDMA traffic obeys neither.
Confirm manually: sysctl net.core.rmem_max
Side effects of the fix: None until a program asks for more; then that socket may hold that much kernel memory.
Sources: https://fasterdata.es.net/host-tuning/linux/ ; https://docs.kernel.org/admin-guide/sysctl/net.html
"""

from nodetune.api import AtLeast, Check, Ref, sysctl

CHECK = Check(
    fact="sysctl.net.core.rmem_max",
    accept=AtLeast(Ref("derived.tcp_buffer_bytes")),
    set=Ref("derived.tcp_buffer_bytes"),
    unit="bytes",
    remedy=sysctl("net.core.rmem_max"),
    part_of="tcp-rmem-below-bandwidth",
    severity="low",
)
