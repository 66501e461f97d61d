"""A GPU has uncorrectable memory errors since the driver was loaded.

Why it matters: The affected program was terminated. A single contained error may stay the only one: its page is out of
use, and new work may run. Several errors point to a failing part. What the GPU cannot survive is reported by
gpu-recovery-needed, gpu-row-remap-failed and gpu-xid-hardware. The counter restarts at zero after a GPU reset or a
driver load.
Confirm manually: nvidia-smi -q -d ECC
Side effects of the fix: A GPU reset ends every program on the GPU.
Sources: https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.api import GPU, Check, Equals, manual

CHECK = Check(
    fact="gpu.ecc_uncorrected_volatile",
    accept=Equals(0),
    applies=(GPU,),
    remedy=manual(
        "Drain the node and reset the GPU (nvidia-smi -r), which also remaps the bad rows. If errors come back, run "
        "the vendor's field diagnostic and ask for a replacement."
    ),
    severity="medium",
    name="uncorrected errors",
    part_of=(
        "gpu-recovery-needed",
        "gpu-row-remap-failed",
        "gpu-xid-hardware",
        "gpu-row-remap-pending",
        "gpu-page-retirement-pending",
    ),
    cost="hardware",
)
