"""The Intel frequency driver is kept from using the highest clocks.

Why it matters: max_perf_pct is a ceiling over all CPUs, in percent of the highest performance that the processor has.
Nothing sets it below 100 by default: a power-saving tool or a forgotten experiment did, and everything on the host runs
slower without any other sign.
Confirm by hand: cat /sys/devices/system/cpu/intel_pstate/max_perf_pct
Side effects of the fix: More power and heat. If a power cap of the rack is why it was lowered, cap power instead.
Sources: https://docs.kernel.org/admin-guide/pm/intel_pstate.html
"""

from nodetune.expect import AtLeast
from nodetune.model import Check
from nodetune.remedies import cpufreq

CHECK = Check(
    fact="cpu.max_perf_pct",
    accept=AtLeast(100),
    set=100,
    unit="%",
    remedy=cpufreq("max_perf_pct"),
    severity="medium",
)
