"""The application clock of a GPU is below its default.

Why it matters: The application clock caps the SM clock of every program. A value below the default of the board was set
by someone, and often forgotten. The default itself may be far below the maximum (T4 585 of 1590 MHz, A100 1095 of 1410):
boards ship so, and it is not a fault. On newer drivers, locked clocks replace the setting and it is absent. If all GPUs
of
the host have the same clock, that is a decision: see gpu-clocks-limited.
Confirm manually: nvidia-smi -q -d CLOCK | grep -A2 -E 'Applications Clocks$|Default Applications Clocks'
Side effects of the fix: The GPU boosts to what power and temperature allow.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html ;
https://docs.nvidia.com/deploy/nvidia-smi/index.html
"""

from nodetune.api import GPU, AtLeast, Check, Fact, FactAbsentError, FactsView, Ref, gpu
from nodetune.checks.gpu._clock_setting import below_alike

SETTING, DEFAULT = "gpu.applications_clock.sm", "gpu.default_applications_clock.sm"


def observe(facts: FactsView) -> Fact:
    if below_alike(facts.readable(SETTING, {}), facts.readable(DEFAULT, {})):
        raise FactAbsentError("one application clock on all GPUs: a decision")
    return facts.fact(SETTING)


CHECK = Check(
    needs=(SETTING, DEFAULT),
    observe=observe,
    accept=AtLeast(Ref(DEFAULT)),
    set="max",
    unit="MHz",
    applies=(GPU,),
    remedy=gpu("applications_clocks"),
    severity="low",
    name="application clock",
)
