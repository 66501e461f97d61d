"""CPU boost (turbo) is off.

Why it matters: Without boost, a core stays at its base clock however cool the package is. Much of the host's work for a
GPU runs on a single thread at a time (the training loop, kernel launches). Boost gains the most there.
Confirm manually: cat /sys/devices/system/cpu/cpufreq/boost /sys/devices/system/cpu/intel_pstate/no_turbo
Side effects of the fix: The package uses more power and produces more heat. If the firmware disabled boost, the kernel
refuses the write and the setting is in the BIOS. Some sites leave boost off so that all nodes perform alike.
Sources: https://docs.kernel.org/admin-guide/pm/cpufreq.html#frequency-boost-support ;
https://docs.kernel.org/admin-guide/pm/intel_pstate.html ;
https://github.com/redhat-performance/tuned (profile throughput-performance)
"""

from nodetune.api import Check, Equals, cpufreq

CHECK = Check(
    fact="cpu.boost",
    accept=Equals(wanted=True),
    set=True,
    remedy=cpufreq("boost"),
    severity="medium",
    name="CPU boost",
)
