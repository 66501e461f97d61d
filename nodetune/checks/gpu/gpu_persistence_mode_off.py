"""Persistence mode is off.

Why it matters: Without it the driver lets go of a GPU when the last program ends. The next one waits seconds for it to
start again, and power limits and clock settings are lost each time. The daemon alone is not enough: some packages
start it with the mode left off.
Confirm by hand: nvidia-smi --query-gpu=index,persistence_mode --format=csv
Side effects of the fix: An idle GPU draws a few watts more. On Grace never switch it off again with jobs running: its
memory would vanish.
Sources: https://docs.nvidia.com/deploy/driver-persistence/persistence-mode-legacy.html ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.conditions import GPU
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import gpu

CHECK = Check(
    fact="gpu.persistence_mode",
    accept=Equals("enabled"),
    set="enabled",
    applies=(GPU,),
    remedy=gpu("persistence_mode"),
    severity="high",
)
