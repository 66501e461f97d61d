"""A GPU could not remap a bad memory row.

Why it matters: The spare rows of a bank are used up or the repair was refused: uncorrectable errors at that place will
come back. This flag is NVIDIA's own sign that the GPU qualifies for replacement.
Confirm by hand: nvidia-smi --query-remapped-rows=gpu_bus_id,remapped_rows.failure --format=csv
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/error-recovery-and-response-flags.html ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.checks.gpu._each import each
from nodetune.conditions import GPU
from nodetune.expect import Equals
from nodetune.model import Check, Fact
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> Fact:
    return each(facts, "gpu.remapped_rows", lambda rows: rows["failure"])


CHECK = Check(
    needs=("gpu.remapped_rows",),
    observe=observe,
    accept=Equals(wanted=False),
    applies=(GPU,),
    remedy=manual("Take the GPU out of service, run the vendor's field diagnostic and ask for a replacement."),
    severity="critical",
    stability="stable",
)
