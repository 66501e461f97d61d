"""A GPU has bad memory pages that wait to be retired.

Why it matters: Volta and Turing take a bad page out of use only when the driver attaches to the GPU again: until then
programs can still be given it.
Confirm by hand: nvidia-smi -q -d PAGE_RETIREMENT
Side effects of the fix: Ends every program on the GPU.
Sources: https://docs.nvidia.com/deploy/dynamic-page-retirement/visibility.html ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.conditions import GPU
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual

CHECK = Check(
    fact="gpu.retired_pages_pending",
    accept=Equals(wanted=False),
    applies=(GPU,),
    remedy=manual("Drain the node and reset the GPU (nvidia-smi -r), or reboot."),
    severity="high",
)
