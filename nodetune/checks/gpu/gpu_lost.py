"""A GPU does not answer the driver.

Why it matters: NVML counts the GPU but cannot reach it. Every program that uses it fails or hangs, and tools that read
all GPUs may hang with it.
Healthy exception: A GPU that may not be read (no permission) is not lost.
Confirm manually: nvidia-smi
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html ;
https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
"""

from nodetune.api import GPU, Check, Equals, repair

CHECK = Check(
    fact="gpu.access",
    accept=Equals("ok"),
    applies=(GPU,),
    remedy=repair(
        "Drain the node. Read dmesg | grep -i xid. Reset the GPU (nvidia-smi -r -i INDEX with no process left on it) "
        "if the driver still allows it; otherwise power the host off and on. If the GPU is lost again, open a case "
        "with the vendor and attach the output of nvidia-bug-report.sh."
    ),
    severity="critical",
    stability="stable",
)
