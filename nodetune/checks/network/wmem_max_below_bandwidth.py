"""Programs cannot ask for a send buffer that fills the link.

Why it matters: net.core.wmem_max caps what a program may request with SO_SNDBUF (NCCL_SOCKET_SNDBUF, iperf3 -w,
storage clients). A sender must keep everything that is not yet acknowledged: bandwidth times round trip.
TCP's own autotuning obeys tcp_wmem instead, and RDMA traffic neither.
Confirm by hand: sysctl net.core.wmem_max
Side effects of the fix: None until a program asks for more; then that socket may hold that much kernel memory.
Sources: https://fasterdata.es.net/host-tuning/linux/ ; https://docs.kernel.org/admin-guide/sysctl/net.html
"""

from nodetune.expect import AtLeast
from nodetune.model import Check, Ref
from nodetune.remedies import sysctl

CHECK = Check(
    fact="sysctl.net.core.wmem_max",
    accept=AtLeast(Ref("derived.tcp_buffer_bytes")),
    set=Ref("derived.tcp_buffer_bytes"),
    unit="bytes",
    remedy=sysctl("net.core.wmem_max"),
    severity="low",
)
