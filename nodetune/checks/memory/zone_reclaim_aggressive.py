"""A NUMA node that is full writes out or swaps its own pages before it takes memory from another node.

Why it matters: Zone reclaim keeps memory local at the price of the page cache. Its bits 2 and 4 also write dirty pages
and swap for that, so a data loader stalls on disk while other nodes have memory free. 0 suits data loaders; 1 (drop
clean pages only) is what HPC profiles choose and is accepted.
Confirm by hand: sysctl vm.zone_reclaim_mode
Side effects of the fix: Memory of a large process may come from a remote node instead.
Sources: https://docs.kernel.org/admin-guide/sysctl/vm.html#zone-reclaim-mode ;
https://github.com/redhat-performance/tuned (profile hpc-compute sets 1)
"""

from nodetune.expect import OneOf
from nodetune.model import Check
from nodetune.remedies import sysctl

CHECK = Check(
    fact="sysctl.vm.zone_reclaim_mode",
    accept=OneOf([0, 1]),
    set=0,
    absent="pass",
    remedy=sysctl("vm.zone_reclaim_mode", boot_default=0),
    severity="low",
)
