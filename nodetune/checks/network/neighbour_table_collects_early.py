"""net.ipv4.neigh.default.gc_thresh2 is too low for a cluster.

Why it matters: Above gc_thresh2, the kernel drops entries older than five seconds. It must then resolve every host
behind them again, with broadcasts to the whole network in the middle of a job.
Confirm manually: sysctl net.ipv4.neigh.default.gc_thresh2
Side effects of the fix: A larger table may hold a few more megabytes of kernel memory.
Sources: https://docs.kernel.org/networking/ip-sysctl.html ;
https://github.com/Azure/azhpc-images/blob/master/components/hpc-tuning.sh
"""

from nodetune.api import RDMA, AtLeast, Check, sysctl

CHECK = Check(
    fact="sysctl.net.ipv4.neigh.default.gc_thresh2",
    accept=AtLeast(2048),
    set=8192,
    unit="entries",
    applies=(RDMA,),
    remedy=sysctl("net.ipv4.neigh.default.gc_thresh2", boot_default=512),
    part_of="neighbour-table-small",
    severity="info",
)
