"""The SRAM errors of a GPU exceed NVIDIA's threshold.

Why it matters: The GPU keeps this flag across resets and reboots: its SRAM errors are past the threshold of NVIDIA's
field diagnostic. SRAM cannot be remapped, so the part is due for replacement.
Healthy exception: Older GPUs and drivers do not report this.
Confirm manually: nvidia-smi -q -d ECC | grep -i threshold
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/structnvmlEccSramErrorStatus__v1__t.html ;
https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html
"""

from nodetune.api import GPU, Check, Equals, repair

CHECK = Check(
    fact="gpu.sram_threshold_exceeded",
    accept=Equals(wanted=False),
    applies=(GPU,),
    remedy=repair("Take the GPU out of service, run the vendor's field diagnostic and ask for a replacement."),
    severity="critical",
    name="too many SRAM errors",
    stability="stable",
)
