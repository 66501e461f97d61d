"""net.core.wmem_max is too low for the link.

Why it matters: net.core.wmem_max caps the send buffer that a program can request with SO_SNDBUF (NCCL_SOCKET_SNDBUF,
iperf3 -w, storage clients). A sender must keep all data that is not yet acknowledged: bandwidth times round-trip time.
TCP autotuning obeys tcp_wmem instead, and RDMA traffic obeys neither.
Confirm manually: sysctl net.core.wmem_max
Side effects of the fix: None until a program asks for more; then that socket may hold that much kernel memory.
Sources: https://fasterdata.es.net/host-tuning/linux/ ; https://docs.kernel.org/admin-guide/sysctl/net.html
"""

from nodetune.api import AtLeast, Check, Ref, sysctl

CHECK = Check(
    fact="sysctl.net.core.wmem_max",
    accept=AtLeast(Ref("derived.tcp_buffer_bytes")),
    set=Ref("derived.tcp_buffer_bytes"),
    unit="bytes",
    remedy=sysctl("net.core.wmem_max"),
    part_of="tcp-rmem-below-bandwidth",
    severity="low",
)
