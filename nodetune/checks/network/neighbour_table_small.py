"""net.ipv4.neigh.default.gc_thresh3 is too low for a cluster.

Why it matters: A job across hundreds of hosts, with several networks each, needs one entry per address. Beyond
gc_thresh3, the kernel refuses new entries: it logs "neighbor table overflow", and connections fail at random.
Confirm manually: sysctl net.ipv4.neigh.default.gc_thresh3
Side effects of the fix: A larger table may hold a few more megabytes of kernel memory.
Sources: https://docs.kernel.org/networking/ip-sysctl.html ;
https://github.com/Azure/azhpc-images/blob/master/components/hpc-tuning.sh
"""

from nodetune.api import RDMA, AtLeast, Check, sysctl

CHECK = Check(
    fact="sysctl.net.ipv4.neigh.default.gc_thresh3",
    accept=AtLeast(4096),
    set=16384,
    unit="entries",
    applies=(RDMA,),
    remedy=sysctl("net.ipv4.neigh.default.gc_thresh3", boot_default=1024),
    severity="info",
)
