"""intel_pstate/max_perf_pct is below 100.

Why it matters: max_perf_pct caps the frequency of all CPUs, in percent of the processor's highest performance. Nothing
sets it below 100 by default. A lower value comes from a power-saving tool or a forgotten experiment. Everything on the
host then runs slower without any other sign.
Confirm manually: cat /sys/devices/system/cpu/intel_pstate/max_perf_pct
Side effects of the fix: CPUs use more power and produce more heat. If the value was lowered for a rack power cap, cap
power instead.
Sources: https://docs.kernel.org/admin-guide/pm/intel_pstate.html
"""

from nodetune.api import AtLeast, Check, cpufreq

CHECK = Check(
    fact="cpu.max_perf_pct",
    accept=AtLeast(100),
    set=100,
    unit="%",
    remedy=cpufreq("max_perf_pct"),
    severity="medium",
)
