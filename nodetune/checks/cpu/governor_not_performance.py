"""The CPU frequency governor is not 'performance'.

Why it matters: Other governors raise the clock only after a CPU has been busy for a while. The threads that feed GPUs
(launching kernels, NCCL proxies, data loaders) work in short bursts. They therefore run at a low clock while a GPU
waits for them. One slow rank delays all other ranks of a job.
Healthy exception: A virtual machine without frequency control has no governor.
Confirm manually: cat /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor | sort | uniq -c
Side effects of the fix: CPUs use more power when idle or lightly loaded. Where tuned runs, a profile of nodetune's that
includes the active one becomes the active profile. power-profiles-daemon or a BMC policy may change the governor back:
let only one of them control it. With intel_pstate or amd-pstate in active mode, the energy preference follows by itself.
Sources: https://docs.kernel.org/admin-guide/pm/cpufreq.html ;
https://github.com/redhat-performance/tuned (profile throughput-performance) ;
https://nvidia.github.io/grace-cpu-benchmarking-guide/
"""

from nodetune.api import Check, Equals, cpufreq

CHECK = Check(
    fact="cpu.governor",
    accept=Equals("performance"),
    set="performance",
    remedy=cpufreq("governor"),
    severity="high",
    stability="stable",
)
