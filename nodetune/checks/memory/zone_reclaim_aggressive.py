"""vm.zone_reclaim_mode writes or swaps pages.

Why it matters: Zone reclaim makes a full NUMA node free its own pages before it takes memory from another node. This
keeps memory local at the cost of the page cache. With bits 2 and 4 the kernel also writes dirty pages and swaps, so a
data loader stalls on disk while other nodes have free memory. 0 suits data loaders; 1 (drop clean pages only) is used
by HPC profiles and is accepted.
Confirm manually: sysctl vm.zone_reclaim_mode
Side effects of the fix: Memory of a large process may come from a remote node instead.
Sources: https://docs.kernel.org/admin-guide/sysctl/vm.html#zone-reclaim-mode ;
https://github.com/redhat-performance/tuned (profile hpc-compute sets 1)
"""

from nodetune.api import Check, OneOf, sysctl

CHECK = Check(
    fact="sysctl.vm.zone_reclaim_mode",
    accept=OneOf([0, 1]),
    set=0,
    absent="pass",
    remedy=sysctl("vm.zone_reclaim_mode", boot_default=0),
    severity="low",
)
