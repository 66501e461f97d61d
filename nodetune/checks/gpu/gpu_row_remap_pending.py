"""A GPU has bad memory rows that wait for a reset to be remapped.

Why it matters: The pages are kept out of use meanwhile, and NVIDIA says that new work may start: nothing is wrong now.
Only a reset makes the repair lasting, so it belongs to the next idle moment.
Confirm by hand: nvidia-smi --query-remapped-rows=gpu_bus_id,remapped_rows.pending --format=csv
Side effects of the fix: A GPU reset ends every program on the GPU.
Sources: https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/error-recovery-and-response-flags.html
"""

from nodetune.checks.gpu._each import each
from nodetune.conditions import GPU
from nodetune.expect import Equals
from nodetune.model import Check, Fact
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> Fact:
    return each(facts, "gpu.remapped_rows", lambda rows: rows["pending"])


CHECK = Check(
    needs=("gpu.remapped_rows",),
    observe=observe,
    accept=Equals(wanted=False),
    applies=(GPU,),
    remedy=manual("At the next idle moment: drain the node and reset the GPU (nvidia-smi -r), or reboot."),
    severity="medium",
    stability="stable",
)
