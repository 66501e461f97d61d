"""Transparent huge pages are set to a policy that does not suit GPU work.

Why it matters: Huge pages save TLB misses where hosts stage large buffers, but only where programs can get them:
"never" takes them away from programs that ask for them by madvise, as NumPy does, and PyTorch where it is told to.
Confirm by hand: cat /sys/kernel/mm/transparent_hugepage/enabled
Side effects of the fix: Only mappings made from then on change; restart a program to see the effect.
Sources: https://docs.kernel.org/admin-guide/mm/transhuge.html ;
https://github.com/redhat-performance/tuned (profiles hpc-compute, network-latency)
"""

from nodetune.expect import OneOf
from nodetune.model import Check
from nodetune.remedies import sysfs

CHECK = Check(
    fact="memory.thp.enabled",
    accept=OneOf(["always", "madvise"]),
    set="madvise",
    remedy=sysfs("/sys/kernel/mm/transparent_hugepage/enabled"),
    severity="medium",
)
