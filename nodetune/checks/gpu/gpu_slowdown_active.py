"""A GPU is being slowed down by heat or by a power signal.

Why it matters: Heat, or a signal from the power supply, cuts the clocks by half or more, and every job across this GPU
runs at its pace. A power cap at full load is normal and not counted.
Confirm by hand: nvidia-smi -q -d PERFORMANCE
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.checks.gpu._each import each
from nodetune.conditions import GPU
from nodetune.expect import Empty
from nodetune.model import Check, Fact
from nodetune.remedies import manual
from nodetune.view import View

SLOWDOWNS = ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown")


def observe(facts: View) -> Fact:
    return each(facts, "gpu.clocks_event_reasons", lambda reasons: [one for one in reasons if one in SLOWDOWNS])


CHECK = Check(
    needs=("gpu.clocks_event_reasons",),
    observe=observe,
    accept=Empty("no slowdown"),
    applies=(GPU,),
    remedy=manual(
        "Thermal: check fans, filters, airflow or coolant, and the temperature of the room. Power brake: the platform pulls "
        "it, look at the power supplies and power caps in the BMC (ipmitool sel list)."
    ),
    severity="high",
)
