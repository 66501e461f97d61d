"""A clock setting limits the SM clock of a GPU.

Why it matters: The driver reports that a setting (locked clocks or application clocks) keeps the SM clock below its
maximum. One such GPU slows every collective that it takes part in. If all GPUs of the host are held at the same clock,
that is a decision: see gpu-clocks-limited. So is a lock that nodetune keeps because the site declares it
(gpu-sm-clock-unwanted). A default application clock is not a limit that an operator set, unless a busy GPU runs at
another clock for no other reason: then its clocks are locked.
Confirm manually: nvidia-smi -q -d CLOCK,PERFORMANCE
Side effects of the fix: The GPU boosts to what power and temperature allow: power draw and heat rise.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html ;
https://docs.nvidia.com/deploy/nvidia-smi/index.html
"""

from nodetune.api import GPU, Check, Empty, FactsView, gpu
from nodetune.checks.gpu._clock_setting import NEEDS, held_down, is_decision
from nodetune.checks.gpu._declared import LOCK_NEEDS, held_by_us


def observe(facts: FactsView) -> dict[str, str]:
    held = held_down(facts)
    held |= dict.fromkeys(held_by_us(facts, "locked_clocks", facts["gpu.clock_info.sm"]) & set(held), "")
    return dict.fromkeys(held, "") if is_decision(facts, held) else held


CHECK = Check(
    needs=(*NEEDS, *LOCK_NEEDS),
    observe=observe,
    accept=Empty("no setting that limits the clock"),
    set="none",
    applies=(GPU,),
    remedy=gpu("locked_clocks"),
    severity="medium",
    name="SM clock",
)
