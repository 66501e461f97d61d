"""transparent_hugepage/enabled is unsuitable for GPU work.

Why it matters: Huge pages save TLB misses where hosts stage large buffers, but only if programs can get them. With
"never", programs that request them with madvise do not get them. NumPy makes such requests, and PyTorch does if
configured to.
Confirm manually: cat /sys/kernel/mm/transparent_hugepage/enabled
Side effects of the fix: Only mappings made afterwards change. Restart a program to see the effect.
Sources: https://docs.kernel.org/admin-guide/mm/transhuge.html ;
https://github.com/redhat-performance/tuned (profiles hpc-compute, network-latency)
"""

from nodetune.api import Check, OneOf, sysfs

CHECK = Check(
    fact="memory.thp.enabled",
    accept=OneOf(["always", "madvise"]),
    set="madvise",
    remedy=sysfs("/sys/kernel/mm/transparent_hugepage/enabled"),
    severity="medium",
    name="transparent_hugepage",
)
