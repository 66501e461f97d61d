"""The CPU frequency governor is not set to performance.

Why it matters: Other governors raise the clock only after a CPU has been busy for a while. The threads that feed GPUs
(launching kernels, NCCL proxies, data loaders) work in short bursts, so they run at a low clock just when a GPU waits
for them. One slow rank holds up all others of a job.
Confirm by hand: cat /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor | sort | uniq -c
Side effects of the fix: More power when idle or lightly loaded. power-profiles-daemon, tuned or a BMC policy may set it
back: decide on one owner. With intel_pstate or amd-pstate in active mode the energy preference follows by itself.
Sources: https://docs.kernel.org/admin-guide/pm/cpufreq.html ;
https://github.com/redhat-performance/tuned (profile throughput-performance) ;
https://nvidia.github.io/grace-cpu-benchmarking-guide/
"""

from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import cpufreq

CHECK = Check(
    fact="cpu.governor",
    accept=Equals("performance"),
    set="performance",
    remedy=cpufreq("governor"),
    severity="high",
    stability="stable",
)
