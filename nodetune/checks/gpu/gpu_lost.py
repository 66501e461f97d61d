"""A GPU no longer answers the driver.

Why it matters: NVML counts it and cannot reach it. Every program that touches it fails or hangs, and tools that read
all GPUs may hang with it.
Confirm by hand: nvidia-smi
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html ;
https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
"""

from nodetune.conditions import GPU
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual

CHECK = Check(
    fact="gpu.access",
    accept=Equals("ok"),
    applies=(GPU,),
    remedy=manual(
        "Drain the node. Read dmesg | grep -i xid. Reset the GPU (nvidia-smi -r -i INDEX with no process left on it) where the "
        "driver still allows it, otherwise power the host off and on. A GPU that is lost again goes to the vendor with the "
        "output of nvidia-bug-report.sh."
    ),
    severity="critical",
    stability="stable",
)
