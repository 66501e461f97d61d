"""A clock setting limits the SM clocks of all GPUs alike.

Why it matters: All GPUs of the host are held at one clock below their maximum. Sites do this on purpose, for energy or
for even results. The check reports it to explain slower results and changes nothing.
Confirm manually: nvidia-smi -q -d CLOCK,PERFORMANCE
Side effects of the fix: Power draw and heat rise to what the GPUs allow.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html ;
https://docs.nvidia.com/deploy/nvidia-smi/index.html
"""

from nodetune.api import GPU, Check, Empty, FactsView, manual
from nodetune.checks.gpu._clock_setting import NEEDS, held_down, is_decision


def observe(facts: FactsView) -> dict[str, str]:
    held = held_down(facts)
    return held if is_decision(facts, held) else dict.fromkeys(held, "")


CHECK = Check(
    needs=NEEDS,
    observe=observe,
    accept=Empty("no common limit"),
    applies=(GPU,),
    remedy=manual("If this is not intended: nvidia-smi -rgc, and look for what locks the clocks at boot."),
    severity="info",
)
