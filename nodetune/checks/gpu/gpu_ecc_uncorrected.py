"""A GPU had uncorrectable memory errors since the driver was loaded.

Why it matters: The program that met them was ended, or its results cannot be trusted. One contained error may be all;
several point to a failing part. The count starts anew with a GPU reset or a driver load.
Confirm by hand: nvidia-smi -q -d ECC
Side effects of the fix: A GPU reset ends every program on the GPU.
Sources: https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.conditions import GPU
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual

CHECK = Check(
    fact="gpu.ecc_uncorrected_volatile",
    accept=Equals(0),
    applies=(GPU,),
    remedy=manual(
        "Drain the node and reset the GPU (nvidia-smi -r), which also remaps the bad rows. When errors come back run the "
        "vendor's field diagnostic and ask for a replacement."
    ),
    severity="critical",
)
