"""A GPU has memory pages pending retirement.

Why it matters: Volta and Turing retire a bad page only when the driver attaches to the GPU again. Until then, the
driver can still give the page to programs.
Healthy exception: Ampere and newer GPUs remap rows and retire no pages.
Confirm manually: nvidia-smi -q -d PAGE_RETIREMENT
Side effects of the fix: Ends every program on the GPU.
Sources: https://docs.nvidia.com/deploy/dynamic-page-retirement/visibility.html ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html ;
https://github.com/NVIDIA/DCGM (dcgm_errors.c: one severity for pending pages and rows after a double-bit error)
"""

from nodetune.api import GPU, Check, Equals, manual

CHECK = Check(
    fact="gpu.retired_pages_pending",
    accept=Equals(wanted=False),
    applies=(GPU,),
    remedy=manual("Drain the node and reset the GPU (nvidia-smi -r), or reboot."),
    severity="medium",
    name="page retirement pending",
    part_of=("gpu-recovery-needed", "gpu-xid-hardware", "gpu-reset-due"),
    cost="hardware",
)
