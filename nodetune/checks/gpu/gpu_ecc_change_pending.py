"""A change of the ECC mode is pending.

Why it matters: The configured mode differs from the active mode. After the next reset or reboot the GPU behaves
differently, at a time that nobody planned.
Confirm manually: nvidia-smi --query-gpu=index,ecc.mode.current,ecc.mode.pending --format=csv
Side effects of the fix: A GPU reset ends every program on the GPU.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.api import GPU, Check, Equals, Ref, manual

CHECK = Check(
    fact="gpu.ecc_mode_pending",
    accept=Equals(Ref("gpu.ecc_mode")),
    applies=(GPU,),
    remedy=manual("With the node drained: nvidia-smi -r (on an NVSwitch system, all GPUs together), or reboot."),
    severity="medium",
    name="ECC, change pending",
    part_of="gpu-ecc-off",
)
