"""CPUs may enter deep idle states with a long exit latency.

Why it matters: A core goes idle when its thread waits for a GPU or a network card. Each wake-up from a deep state adds
its exit latency (100 microseconds and more) to a step that may itself take less. NCCL with many small messages and
latency-bound serving suffer most.
Confirm manually: grep . /sys/devices/system/cpu/cpu0/cpuidle/state*/{name,latency,disable}
Side effects of the fix: CPUs use more power at idle, and cores that are busy now may reach lower clocks. Do not disable every state: the shallow ones leave power for the
cores that boost. On EPYC disable C2 here and leave the C-state option of the BIOS on automatic. A process that holds
/dev/cpu_dma_latency (tuned's force_latency) has the same effect and counts here.
Sources: https://docs.kernel.org/admin-guide/pm/cpuidle.html ;
https://github.com/redhat-performance/tuned (profile accelerator-performance keeps to 99 us) ;
https://github.com/ROCm/ROCm (MI300X system optimization: disable C2)
"""

from dataclasses import replace

from nodetune.api import AtMost, Check, FactsView, cpufreq


def observe(facts: FactsView) -> dict[str, int]:
    """Return the exit latency of each idle state that some CPU may enter now."""
    enabled = {name: state["latency_us"] for name, state in facts["cpu.idle_states"].items() if state["enabled_on"]}
    limit = facts["cpu.dma_latency_us"]
    return {name: latency for name, latency in enabled.items() if latency <= limit}


CHECK = Check(
    observe=observe,
    needs=("cpu.idle_states", "cpu.dma_latency_us"),
    accept=AtMost(99),
    set=99,
    unit="us",
    remedy=replace(cpufreq("idle_latency_us"), disruption="idle node"),  # work that runs now may lose clock
    severity="low",
    name="idle states",
)
