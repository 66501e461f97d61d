"""The neighbour table keeps only few idle entries.

Why it matters: Up to gc_thresh1 entries stay however old they are. With the kernel's 128 a cluster's addresses come and go
between the phases of a job, and a large start begins with a storm of ARP requests.
Confirm by hand: sysctl net.ipv4.neigh.default.gc_thresh1
Side effects of the fix: A larger table may hold a few more megabytes of kernel memory.
Sources: https://docs.kernel.org/networking/ip-sysctl.html ;
https://github.com/Azure/azhpc-images/blob/master/components/hpc-tuning.sh
"""

from nodetune.conditions import RDMA
from nodetune.expect import AtLeast
from nodetune.model import Check
from nodetune.remedies import sysctl

CHECK = Check(
    fact="sysctl.net.ipv4.neigh.default.gc_thresh1",
    accept=AtLeast(1024),
    set=4096,
    unit="entries",
    applies=(RDMA,),
    remedy=sysctl("net.ipv4.neigh.default.gc_thresh1", boot_default=128),
    severity="low",
)
