"""A GPU has memory rows pending remapping.

Why it matters: The driver keeps the pages out of use, and NVIDIA allows new work to start: nothing is wrong now. Only
a reset makes the repair permanent, so reset the GPU at the next idle moment.
Confirm manually: nvidia-smi --query-remapped-rows=gpu_bus_id,remapped_rows.pending --format=csv
Side effects of the fix: A GPU reset ends every program on the GPU.
Sources: https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/error-recovery-and-response-flags.html
"""

from nodetune.api import GPU, Check, Equals, Fact, FactsView, manual
from nodetune.checks.gpu._each import each


def observe(facts: FactsView) -> Fact:
    return each(facts, "gpu.remapped_rows", lambda rows: rows["pending"])


CHECK = Check(
    needs=("gpu.remapped_rows",),
    observe=observe,
    accept=Equals(wanted=False),
    applies=(GPU,),
    remedy=manual("When the node is idle: drain it and reset the GPU (nvidia-smi -r), or reboot."),
    severity="medium",
    name="row remap pending",
    part_of=("gpu-recovery-needed", "gpu-row-remap-failed", "gpu-xid-hardware", "gpu-reset-due"),
    cost="hardware",
    stability="stable",
)
