"""GPUs of the same model have different power limits.

Why it matters: A collective runs at the pace of the slowest GPU, so one GPU with a lower limit slows all of them. A
deliberate policy would give all GPUs the same limit. Cards of several makers have default limits of their own: only GPUs
with one default limit are compared.
Healthy exception: Cards of one model from several makers differ in their default limits.
Confirm manually: nvidia-smi --query-gpu=index,name,power.limit --format=csv
Side effects of the fix: The odd GPU gets the limit of its peers, now and at each boot: power draw and heat change.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.api import GPU, Check, Empty, FactsView, Ref, gpu
from nodetune.checks.shared.gpu_peers import outliers
from nodetune.foundation import text


def observe(facts: FactsView) -> dict[str, str]:
    limits = facts["gpu.power_management_limit"]
    return {
        name: "" if common is None else f"{text.value(limits[name], 'mW')}, its peers {text.value(common, 'mW')}"
        for name, common in outliers(limits, _kinds(facts)).items()
    }


def _kinds(facts: FactsView) -> dict[str, str]:
    """Return GPU → its model and its default limit."""
    defaults = facts.readable("gpu.power_management_default_limit", {})
    return {name: f"{model} {defaults.get(name)}" for name, model in facts["gpu.names"].items()}


CHECK = Check(
    needs=("gpu.power_management_limit", "gpu.power_management_default_limit", "gpu.names"),
    observe=observe,
    accept=Empty("the limit of its peers"),
    set=Ref("derived.usual_power_limits"),
    unit="mW",
    applies=(GPU,),
    remedy=gpu("power_limit"),
    severity="medium",
    name="power limit",
)
