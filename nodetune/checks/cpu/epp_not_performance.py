"""The energy performance preference is not 'performance'.

Why it matters: In active mode of intel_pstate and amd-pstate, the processor chooses its own frequency. The energy
performance preference controls how quickly it raises the clock. Any value but performance delays this for longer than
the short bursts of host work between GPU kernels last. This check runs only where the governor is already performance:
the governor must be fixed first, and the preference then mostly follows.
Confirm manually: cat /sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference | sort | uniq -c
Side effects of the fix: CPUs use more power at low load. While the governor is performance, the kernel sets the
preference itself and refuses a write with "device or resource busy": set the governor first.
Sources: https://docs.kernel.org/admin-guide/pm/intel_pstate.html ;
https://docs.kernel.org/admin-guide/pm/amd-pstate.html ;
https://github.com/redhat-performance/tuned (profile throughput-performance)
"""

from nodetune.api import Absent, Check, Fact, FactsView, OneOf, cpufreq


def observe(facts: FactsView) -> Fact:
    if set(facts.readable("cpu.governor", {}).values()) - {"performance"}:
        return Absent("the governor is not performance (reported separately)")
    return facts.fact("cpu.epp")


CHECK = Check(
    observe=observe,
    needs=("cpu.epp", "cpu.governor"),
    accept=OneOf(["performance", "0"]),  # 0 is the numeric form of performance
    set="performance",
    remedy=cpufreq("epp"),
    severity="medium",
    name="energy preference",
)
