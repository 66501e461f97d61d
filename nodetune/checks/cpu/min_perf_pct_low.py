"""The Intel frequency driver may drop far below the highest clock.

Why it matters: min_perf_pct is the floor that intel_pstate keeps, in percent of the highest performance. With a floor
of 100 a core is at full clock when work arrives instead of a few milliseconds later. The governor decides more than
this does.
Confirm by hand: cat /sys/devices/system/cpu/intel_pstate/min_perf_pct
Side effects of the fix: More power when idle states are shallow; less room for other cores to boost.
Sources: https://docs.kernel.org/admin-guide/pm/intel_pstate.html ;
https://github.com/redhat-performance/tuned (profile throughput-performance)
"""

from nodetune.expect import AtLeast
from nodetune.model import Check
from nodetune.remedies import cpufreq

CHECK = Check(
    fact="cpu.min_perf_pct",
    accept=AtLeast(100),
    set=100,
    unit="%",
    remedy=cpufreq("min_perf_pct"),
    severity="low",
)
