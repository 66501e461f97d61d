"""A MIG mode change waits for a GPU reset.

Why it matters: The requested mode is not in effect. The GPU changes its mode at the next reset or reboot, at an
unplanned time. On Ampere the mode is stored in the GPU and persists.
Healthy exception: Some GPUs cannot be divided.
Confirm manually: nvidia-smi --query-gpu=index,mig.mode.current,mig.mode.pending --format=csv
Side effects of the fix: A GPU reset ends every program on the GPU.
Sources: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/getting-started-with-mig.html ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.api import GPU, Check, Equals, Ref, manual

CHECK = Check(
    fact="gpu.mig_mode_pending",
    accept=Equals(Ref("gpu.mig_mode")),
    applies=(GPU,),
    remedy=manual(
        "Drain the node, stop the clients of the driver (DCGM, monitoring, on DGX nvsm), unload nvidia_drm if a display "
        "manager uses it, then run nvidia-smi -i INDEX -r."
    ),
    severity="high",
    name="MIG mode",
)
