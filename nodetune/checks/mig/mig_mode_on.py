"""MIG mode is on where whole GPUs are wanted.

Why it matters: A GPU in MIG mode runs nothing outside its instances, and instances have no peer access over NVLink:
multi-GPU training does not work on it.
Confirm by hand: nvidia-smi --query-gpu=index,mig.mode.current --format=csv
Side effects of the fix: Destroys all instances; needs the GPU idle (Ampere also resets it).
Sources: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/getting-started-with-mig.html ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.conditions import GPU
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import gpu

CHECK = Check(
    fact="gpu.mig_mode",
    accept=Equals("disabled"),
    set="disabled",
    applies=(GPU,),
    remedy=gpu("mig_mode", "idle GPU"),
    severity="high",
)
