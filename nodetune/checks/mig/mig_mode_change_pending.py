"""A change of the MIG mode waits for a GPU reset.

Why it matters: What was asked for is not in force: after the next reset or reboot the GPU is in the other mode, at a
time that nobody chose. On Ampere the mode is stored in the GPU and stays.
Confirm by hand: nvidia-smi --query-gpu=index,mig.mode.current,mig.mode.pending --format=csv
Side effects of the fix: A GPU reset ends every program on the GPU.
Sources: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/getting-started-with-mig.html ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.conditions import GPU
from nodetune.expect import Equals
from nodetune.model import Check, Ref
from nodetune.remedies import manual

CHECK = Check(
    fact="gpu.mig_mode_pending",
    accept=Equals(Ref("gpu.mig_mode")),
    applies=(GPU,),
    remedy=manual(
        "Drain the node, stop the clients of the driver (DCGM, monitoring, on DGX nvsm), unload nvidia_drm where a display "
        "manager holds it, then nvidia-smi -i INDEX -r."
    ),
    severity="high",
)
