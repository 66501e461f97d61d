"""CPUs may enter idle states from which they take long to wake up.

Why it matters: A thread that waits for a GPU or a network card lets its core fall asleep, and each wake-up from a deep
state adds its exit latency (100 microseconds and more) to a step that itself may take less. NCCL over many small messages
and latency-bound serving feel it most.
Confirm by hand: grep . /sys/devices/system/cpu/cpu0/cpuidle/state*/{name,latency,disable}
Side effects of the fix: More power at idle. Do not disable every state: the shallow ones leave power for the cores that
boost. On EPYC disable C2 here and leave the C-state option of the BIOS on automatic. A process that holds
/dev/cpu_dma_latency (tuned's force_latency) has the same effect and counts here.
Sources: https://docs.kernel.org/admin-guide/pm/cpuidle.html ;
https://github.com/redhat-performance/tuned (profile accelerator-performance keeps to 99 us) ;
https://github.com/ROCm/ROCm (MI300X system optimization: disable C2)
"""

from nodetune.expect import AtMost
from nodetune.model import Check
from nodetune.remedies import cpufreq
from nodetune.view import View


def observe(facts: View) -> dict[str, int]:
    """The exit latency of each idle state that some CPU may enter now."""
    enabled = {name: state["latency_us"] for name, state in facts["cpu.idle_states"].items() if state["enabled_on"]}
    limit = facts["cpu.dma_latency_us"]
    return {name: latency for name, latency in enabled.items() if latency <= limit}


CHECK = Check(
    observe=observe,
    needs=("cpu.idle_states", "cpu.dma_latency_us"),
    accept=AtMost(99),
    set=99,
    unit="us",
    remedy=cpufreq("idle_latency_us"),
    severity="medium",
)
