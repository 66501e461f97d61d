"""Programs cannot ask for a receive buffer that fills the link.

Why it matters: net.core.rmem_max caps what a program may request with SO_RCVBUF (NCCL_SOCKET_RCVBUF, iperf3 -w,
storage clients). A buffer smaller than bandwidth times round trip leaves the link idle between acknowledgements.
TCP's own autotuning obeys tcp_rmem instead, and RDMA traffic neither.
Confirm by hand: sysctl net.core.rmem_max
Side effects of the fix: None until a program asks for more; then that socket may hold that much kernel memory.
Sources: https://fasterdata.es.net/host-tuning/linux/ ; https://docs.kernel.org/admin-guide/sysctl/net.html
"""

from nodetune.expect import AtLeast
from nodetune.model import Check, Ref
from nodetune.remedies import sysctl

CHECK = Check(
    fact="sysctl.net.core.rmem_max",
    accept=AtLeast(Ref("derived.tcp_buffer_bytes")),
    set=Ref("derived.tcp_buffer_bytes"),
    unit="bytes",
    remedy=sysctl("net.core.rmem_max"),
    severity="low",
)
