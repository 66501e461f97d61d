"""The memory clocks of a GPU are not locked as the site declares.

Why it matters: A site that locks clocks (for energy, or for results that repeat) relies on the lock, which a reboot or a
reset of the GPU takes away. The site file declares it for each GPU model: accept: {by_model: {NVIDIA H200: 2619MHz}},
set: {NVIDIA H200: 2619MHz} (or [lowest, highest], or none). nodetune then locks the clocks and locks them again at boot.
NVML does not report which clocks are locked, so the check counts those that nodetune locked since boot. Without such a
line
the check does not apply.
Confirm manually: nvidia-smi -q -d CLOCK,PERFORMANCE; cat /etc/nodetune/gpu.conf
Side effects of the fix: A busy GPU keeps to these clocks; power and heat limits still lower them.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceCommands.html ;
https://docs.nvidia.com/deploy/nvidia-smi/index.html
"""

from nodetune.api import GPU, Check, FactsView, gpu
from nodetune.checks.gpu._declared import LOCK_NEEDS, NEEDS, clocks_declared


def observe(facts: FactsView) -> dict[str, dict[str, object]]:
    return clocks_declared(facts, "locked_memory_clocks", "gpu.clock_info.memory")


CHECK = Check(
    needs=("gpu.clock_info.memory", *NEEDS, *LOCK_NEEDS),
    observe=observe,
    accept=None,
    unit="MHz",
    applies=(GPU,),
    remedy=gpu("locked_memory_clocks"),
    severity="medium",
    name="memory clock",
)
