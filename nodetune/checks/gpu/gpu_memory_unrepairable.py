"""A GPU reports memory that it cannot repair.

Why it matters: The GPU has used up its means of repair, spare rows and channels. Errors at that location will come
back.
Healthy exception: Older GPUs and drivers do not report this.
Does not gate: Too few machines that report it are known. gpu-row-remap-failed and gpu-recovery-needed gate.
Confirm manually: nvidia-smi -q -d ECC | grep -i unrepairable
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.api import GPU, Check, Equals, repair

CHECK = Check(
    fact="gpu.unrepairable_memory",
    accept=Equals(wanted=False),
    applies=(GPU,),
    remedy=repair("Take the GPU out of service, run the vendor's field diagnostic and ask for a replacement."),
    severity="critical",
    name="memory beyond repair",
)
