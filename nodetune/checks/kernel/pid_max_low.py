"""kernel.pid_max is too low.

Why it matters: Each thread uses a process ID too. Data loaders, NCCL proxies and OpenMP start thousands on a large
node. When the IDs run out, the next thread fails with "Resource temporarily unavailable". The kernel starts with 1024
per CPU. systemd raises that to 4194304 on 64-bit machines, and old configuration files lower it again.
Confirm manually: sysctl kernel.pid_max
Side effects of the fix: Process IDs in listings become longer.
Sources: https://docs.kernel.org/admin-guide/sysctl/kernel.html#pid-max ;
https://github.com/redhat-performance/tuned (profile throughput-performance)
"""

from nodetune.api import AtLeast, Check, Ref, sysctl

CHECK = Check(
    fact="sysctl.kernel.pid_max",
    accept=AtLeast(Ref("derived.pid_max")),
    set=4194304,
    remedy=sysctl("kernel.pid_max"),
    severity="low",
)
