"""A GPU has memory banks without a spare row left.

Why it matters: The next bad row in such a bank cannot be remapped: the GPU works now and is one error away from a
failed remapping.
Confirm by hand: nvidia-smi -q | grep -A6 'Remap Availability'
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/structnvmlRowRemapperHistogramValues__t.html ;
https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/error-recovery-and-response-flags.html
"""

from nodetune.checks.gpu._each import each
from nodetune.conditions import GPU
from nodetune.expect import Equals
from nodetune.model import Check, Fact
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> Fact:
    return each(facts, "gpu.row_remapper_histogram", lambda banks: banks["none"])


CHECK = Check(
    needs=("gpu.row_remapper_histogram",),
    observe=observe,
    accept=Equals(0),
    unit="banks",
    applies=(GPU,),
    remedy=manual("Plan the replacement with the vendor before the next uncorrectable error ends a job."),
    severity="high",
)
