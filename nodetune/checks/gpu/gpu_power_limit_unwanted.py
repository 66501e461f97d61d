"""The power limit of a GPU is not the one that the site declares.

Why it matters: A site that caps its GPUs (for cooling, energy or even results) relies on the cap. A limit that is not set,
or that the next boot loses, overloads a circuit or makes nodes unequal. The site file declares the limit of each GPU
model: accept: {by_model: {NVIDIA H200: 600W}}, set: {NVIDIA H200: 600W}. nodetune then sets it and sets it again at boot.
Without such a line the check does not apply.
Confirm manually: nvidia-smi --query-gpu=index,name,power.limit,power.min_limit,power.max_limit --format=csv
Side effects of the fix: A lower limit lowers the clocks under load, a higher one raises power draw and heat.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceCommands.html ;
https://docs.nvidia.com/deploy/nvidia-smi/index.html
"""

from nodetune.api import GPU, Check, FactsView, gpu
from nodetune.checks.gpu._declared import NEEDS, declared


def observe(facts: FactsView) -> dict[str, dict[str, object]]:
    return declared(facts, "power_limit", facts["gpu.power_management_limit"])


CHECK = Check(
    needs=("gpu.power_management_limit", *NEEDS),
    observe=observe,
    accept=None,
    unit="mW",
    applies=(GPU,),
    remedy=gpu("power_limit"),
    severity="medium",
    name="power limit",
)
