"""CPUs are told to prefer saving energy over speed.

Why it matters: Where the processor chooses its own frequency (intel_pstate and amd-pstate in active mode), the energy
performance preference says how eagerly it speeds up. Anything but performance makes it wait before it does, which
short bursts of host work between GPU kernels never outlast. Judged only where the governor is performance already: until
then that comes first, and with it the preference mostly follows by itself.
Confirm by hand: cat /sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference | sort | uniq -c
Side effects of the fix: More power at low load. While the governor is performance the kernel sets the preference itself
and refuses a write with "device or resource busy": set the governor first.
Sources: https://docs.kernel.org/admin-guide/pm/intel_pstate.html ;
https://docs.kernel.org/admin-guide/pm/amd-pstate.html ;
https://github.com/redhat-performance/tuned (profile throughput-performance)
"""

from nodetune.expect import OneOf
from nodetune.model import Absent, Check, Fact
from nodetune.remedies import cpufreq
from nodetune.view import View


def observe(facts: View) -> Fact:
    if set(facts.readable("cpu.governor", {}).values()) - {"performance"}:
        return Absent("the governor is not performance, which is reported by itself")
    return facts.fact("cpu.epp")


CHECK = Check(
    observe=observe,
    needs=("cpu.epp", "cpu.governor"),
    accept=OneOf(["performance", "0"]),  # 0 is the same in numbers
    set="performance",
    remedy=cpufreq("epp"),
    severity="medium",
)
