"""Heat or a power signal slows a GPU down.

Why it matters: Heat, or a signal from the power supply, cuts the clocks by half or more. Every job that uses this GPU
runs at its pace. A power cap at full load is normal and not counted.
Healthy exception: A power cap at full load, and low clocks of an idle GPU, are normal.
Confirm manually: nvidia-smi -q -d PERFORMANCE
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.api import GPU, Check, Empty, Fact, FactsView, repair
from nodetune.checks.gpu._each import each

SLOWDOWNS = ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown")


def observe(facts: FactsView) -> Fact:
    return each(facts, "gpu.clocks_event_reasons", lambda reasons: [one for one in reasons if one in SLOWDOWNS])


CHECK = Check(
    needs=("gpu.clocks_event_reasons",),
    observe=observe,
    accept=Empty("no slowdown"),
    applies=(GPU,),
    remedy=repair(
        "Thermal: check fans, filters, airflow or coolant, and the room temperature. Power brake: the platform "
        "asserts it, so check the power supplies and the power caps in the BMC (ipmitool sel list)."
    ),
    severity="high",
)
