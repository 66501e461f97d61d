"""The power limit of a GPU is below its default.

Why it matters: A lower power limit lowers the clocks that the GPU reaches under load. Sites do this on purpose, for
cooling or energy. The check reports it to explain slower results and changes nothing.
Confirm manually: nvidia-smi -q -d POWER
Side effects of the fix: Power draw and heat rise to the default.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.api import GPU, AtLeast, Check, Ref, manual

CHECK = Check(
    fact="gpu.power_management_limit",
    accept=AtLeast(Ref("gpu.power_management_default_limit")),
    unit="mW",
    applies=(GPU,),
    remedy=manual(
        "If this is not intended: nvidia-smi -i INDEX -pl WATTS with the default from nvidia-smi -q -d POWER."
    ),
    severity="info",
)
