"""A GPU is held below the power limit that was set for it.

Why it matters: The enforced limit is the lowest of all that apply: something else than the setting (the board, the
module, the platform) caps the GPU. It then runs slower than its siblings although every setting is right.
Confirm by hand: nvidia-smi -q -d POWER
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.conditions import GPU
from nodetune.expect import AtLeast
from nodetune.model import Check, Ref
from nodetune.remedies import manual

CHECK = Check(
    fact="gpu.enforced_power_limit",
    accept=AtLeast(Ref("gpu.power_management_limit")),
    unit="mW",
    applies=(GPU,),
    remedy=manual(
        "Look for a power cap in the BMC (Redfish PowerControl, the vendor's tool) and at the power supplies."
    ),
    severity="low",
)
