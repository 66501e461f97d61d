"""A GPU's compute mode keeps programs out.

Why it matters: In exclusive mode only one process can use the GPU and in prohibited mode none: a second process of the
same job, a health check or a monitoring probe fails with a message that does not name the cause. Exclusive mode does
not go with MIG.
Confirm by hand: nvidia-smi --query-gpu=index,compute_mode --format=csv
Side effects of the fix: Programs of several users can then share a GPU unless the scheduler keeps them apart.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html ;
https://docs.nvidia.com/datacenter/tesla/mig-user-guide/getting-started-with-mig.html
"""

from nodetune.conditions import GPU
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import gpu

CHECK = Check(
    fact="gpu.compute_mode",
    accept=Equals("default"),
    set="default",
    applies=(GPU,),
    remedy=gpu("compute_mode"),
    severity="high",
)
