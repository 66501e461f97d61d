"""GPU accounting mode is off.

Why it matters: With accounting mode on, the driver records the time and memory of each process that has ended, and job
accounting can read the record. Most sites take these figures from DCGM instead.
Confirm manually: nvidia-smi --query-gpu=index,accounting.mode --format=csv
Side effects of the fix: A little work at the end of each process.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.api import GPU, Check, Equals, gpu

CHECK = Check(
    fact="gpu.accounting_mode",
    accept=Equals("enabled"),
    set="enabled",
    applies=(GPU,),
    remedy=gpu("accounting_mode"),
    severity="info",
    name="accounting mode",
)
