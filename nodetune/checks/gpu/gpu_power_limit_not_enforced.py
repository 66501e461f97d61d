"""The enforced power limit of a GPU is below the configured one.

Why it matters: The enforced limit is the lowest of all limits that apply. Something other than the setting (the board,
the module, the platform) caps the GPU. It then runs slower than its peers although every setting is right.
Confirm manually: nvidia-smi -q -d POWER
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.api import GPU, AtLeast, Check, Ref, manual

CHECK = Check(
    fact="gpu.enforced_power_limit",
    accept=AtLeast(Ref("gpu.power_management_limit")),
    unit="mW",
    applies=(GPU,),
    remedy=manual(
        "Look for a power cap in the BMC (Redfish PowerControl, the vendor's tool), and check the power supplies."
    ),
    severity="low",
    name="enforced power limit",
    part_of="gpu-power-limit-capped",
)
