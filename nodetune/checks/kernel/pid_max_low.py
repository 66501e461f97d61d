"""There are few process numbers for this many CPUs.

Why it matters: Threads count too. Data loaders, NCCL proxies and OpenMP start thousands on a large node, and when the
numbers run out the next thread fails with "Resource temporarily unavailable". The kernel starts with 1024 for each
CPU; systemd raises that to 4194304 on 64-bit machines, and old files lower it again.
Confirm by hand: sysctl kernel.pid_max
Side effects of the fix: Longer numbers in process listings.
Sources: https://docs.kernel.org/admin-guide/sysctl/kernel.html#pid-max ;
https://github.com/redhat-performance/tuned (profile throughput-performance)
"""

from nodetune.expect import AtLeast
from nodetune.model import Check, Ref
from nodetune.remedies import sysctl

CHECK = Check(
    fact="sysctl.kernel.pid_max",
    accept=AtLeast(Ref("derived.pid_max")),
    set=4194304,
    remedy=sysctl("kernel.pid_max"),
    severity="low",
)
