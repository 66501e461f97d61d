"""The compute mode of a GPU restricts which programs can use it.

Why it matters: In exclusive mode only one process can use the GPU; in prohibited mode none can. A second process of
the same job, a health check or a monitoring probe then fails with a message that does not name the cause. Exclusive
mode cannot be combined with MIG.
Confirm manually: nvidia-smi --query-gpu=index,compute_mode --format=csv
Side effects of the fix: Programs of several users can then share a GPU unless the scheduler separates them.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html ;
https://docs.nvidia.com/datacenter/tesla/mig-user-guide/getting-started-with-mig.html
"""

from nodetune.api import GPU, Check, Equals, gpu

CHECK = Check(
    fact="gpu.compute_mode",
    accept=Equals("default"),
    set="default",
    applies=(GPU,),
    remedy=gpu("compute_mode"),
    severity="high",
)
