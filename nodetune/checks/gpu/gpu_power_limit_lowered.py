"""A GPU's power limit is set below its default.

Why it matters: It lowers the clocks that the GPU reaches under load. Sites do this on purpose, for cooling or energy:
it is reported so that slower results have an explanation, and left as it is.
Confirm by hand: nvidia-smi -q -d POWER
Side effects of the fix: Draw and heat rise to the default.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.conditions import GPU
from nodetune.expect import AtLeast
from nodetune.model import Check, Ref
from nodetune.remedies import manual

CHECK = Check(
    fact="gpu.power_management_limit",
    accept=AtLeast(Ref("gpu.power_management_default_limit")),
    unit="mW",
    applies=(GPU,),
    remedy=manual("Where it is not wanted: nvidia-smi -i INDEX -pl WATTS with the default of nvidia-smi -q -d POWER."),
    severity="info",
)
