"""The driver keeps no account of what processes used.

Why it matters: With accounting on it remembers time and memory of each process that ended, which job accounting can
read. Most sites take this from DCGM instead.
Confirm by hand: nvidia-smi --query-gpu=index,accounting.mode --format=csv
Side effects of the fix: A little work at the end of each process.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.conditions import GPU
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import gpu

CHECK = Check(
    fact="gpu.accounting_mode",
    accept=Equals("enabled"),
    set="enabled",
    applies=(GPU,),
    remedy=gpu("accounting_mode"),
    severity="info",
)
