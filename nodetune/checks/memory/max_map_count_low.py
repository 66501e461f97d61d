"""A process may map few regions of memory.

Why it matters: Loaders that map many shards, memory-mapped data sets and allocators with many arenas use one region
each. At the kernel's 65530 a large job fails with "Cannot allocate memory" though memory is free.
Confirm by hand: sysctl vm.max_map_count
Side effects of the fix: None known; a region costs a little kernel memory when it is used.
Sources: https://docs.kernel.org/admin-guide/sysctl/vm.html#max-map-count
"""

from nodetune.expect import AtLeast
from nodetune.model import Check
from nodetune.remedies import sysctl

CHECK = Check(
    fact="sysctl.vm.max_map_count",
    accept=AtLeast(262144),
    set=1048576,
    remedy=sysctl("vm.max_map_count", boot_default=65530),
    severity="low",
)
