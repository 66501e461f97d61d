"""A GPU reports memory that it can no longer repair.

Why it matters: Its own means, spare rows and channels, are used up: errors at that place will come back.
Confirm by hand: nvidia-smi -q -d ECC | grep -i unrepairable
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.conditions import GPU
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual

CHECK = Check(
    fact="gpu.unrepairable_memory",
    accept=Equals(wanted=False),
    applies=(GPU,),
    remedy=manual("Take the GPU out of service, run the vendor's field diagnostic and ask for a replacement."),
    severity="critical",
)
