"""A change of the ECC mode waits for a GPU reset.

Why it matters: What is set is not what is in force: after the next reset or reboot the GPU behaves differently, at a
time that nobody chose.
Confirm by hand: nvidia-smi --query-gpu=index,ecc.mode.current,ecc.mode.pending --format=csv
Side effects of the fix: A GPU reset ends every program on the GPU.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.conditions import GPU
from nodetune.expect import Equals
from nodetune.model import Check, Ref
from nodetune.remedies import manual

CHECK = Check(
    fact="gpu.ecc_mode_pending",
    accept=Equals(Ref("gpu.ecc_mode")),
    applies=(GPU,),
    remedy=manual("With the node drained: nvidia-smi -r (all GPUs of an NVSwitch system together), or reboot."),
    severity="medium",
)
