"""Entries of the neighbour table are thrown away while a cluster job needs them.

Why it matters: Above gc_thresh2 the kernel drops entries that are older than five seconds, and every host behind them must
be asked for again: broadcasts to the whole network in the middle of a job.
Confirm by hand: sysctl net.ipv4.neigh.default.gc_thresh2
Side effects of the fix: A larger table may hold a few more megabytes of kernel memory.
Sources: https://docs.kernel.org/networking/ip-sysctl.html ;
https://github.com/Azure/azhpc-images/blob/master/components/hpc-tuning.sh
"""

from nodetune.conditions import RDMA
from nodetune.expect import AtLeast
from nodetune.model import Check
from nodetune.remedies import sysctl

CHECK = Check(
    fact="sysctl.net.ipv4.neigh.default.gc_thresh2",
    accept=AtLeast(2048),
    set=8192,
    unit="entries",
    applies=(RDMA,),
    remedy=sysctl("net.ipv4.neigh.default.gc_thresh2", boot_default=512),
    severity="low",
)
