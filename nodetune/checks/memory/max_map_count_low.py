"""vm.max_map_count is too low.

Why it matters: Loaders that map many shards, memory-mapped data sets and allocators with many arenas use one memory
region each. At the kernel's default of 65530, a large job fails with "Cannot allocate memory" although memory is free.
Confirm manually: sysctl vm.max_map_count
Side effects of the fix: None known. A region uses a little kernel memory when it is in use.
Sources: https://docs.kernel.org/admin-guide/sysctl/vm.html#max-map-count
"""

from nodetune.api import AtLeast, Check, sysctl

CHECK = Check(
    fact="sysctl.vm.max_map_count",
    accept=AtLeast(262144),
    set=1048576,
    remedy=sysctl("vm.max_map_count", boot_default=65530),
    severity="low",
)
