"""The power limit of a GPU is below its default.

Why it matters: A lower power limit lowers the clocks that the GPU reaches under load. Sites do this on purpose, for
cooling or energy. The check reports it to explain slower results and changes nothing: a limit that only some GPUs have
is fixed by gpu-power-limit-unequal. It leaves out a limit that nodetune
keeps because the site declares it (gpu-power-limit-unwanted).
Confirm manually: nvidia-smi -q -d POWER
Side effects of the fix: Power draw and heat rise to the default.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.api import GPU, Absent, AtLeast, Check, Each, Fact, FactsView, Ref, manual
from nodetune.checks.gpu._declared import limited_by_us
from nodetune.checks.shared.kept_at_boot import KEPT_IN

LIMIT = "gpu.power_management_limit"


def observe(facts: FactsView) -> Fact:
    fact = facts.fact(LIMIT)
    if not isinstance(fact, Each):
        return fact
    ours = limited_by_us(facts, facts.readable(LIMIT, {}))
    return Each({name: Absent("nodetune keeps this limit") if name in ours else one for name, one in fact.of.items()})


CHECK = Check(
    needs=(LIMIT, KEPT_IN),
    observe=observe,
    accept=AtLeast(Ref("gpu.power_management_default_limit")),
    unit="mW",
    applies=(GPU,),
    remedy=manual(
        "If this is not intended: nvidia-smi -i INDEX -pl WATTS with the default from nvidia-smi -q -d POWER."
    ),
    severity="info",
    name="power limit",
    part_of="gpu-power-limit-unequal",
)
