"""MIG mode is on.

Why it matters: A GPU in MIG mode runs nothing outside its instances, and instances have no peer access over NVLink.
Multi-GPU training does not work on such a GPU.
Confirm manually: nvidia-smi --query-gpu=index,mig.mode.current --format=csv
Side effects of the fix: All instances are destroyed. The GPU must be idle (Ampere also resets it).
Sources: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/getting-started-with-mig.html ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.api import GPU, Check, Equals, gpu

CHECK = Check(
    fact="gpu.mig_mode",
    accept=Equals("disabled"),
    set="disabled",
    applies=(GPU,),
    remedy=gpu("mig_mode", "idle GPU"),
    severity="high",
)
