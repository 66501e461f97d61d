"""A GPU has memory banks without spare rows.

Why it matters: The GPU cannot remap the next bad row in such a bank. It works now, but it is one error away from a
failed remapping.
Healthy exception: A bank that has used some of its spare rows can remap more.
Confirm manually: nvidia-smi -q | grep -A6 'Remap Availability'
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvml-api/structnvmlRowRemapperHistogramValues__t.html ;
https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/error-recovery-and-response-flags.html
"""

from nodetune.api import GPU, Check, Equals, Fact, FactsView, manual
from nodetune.checks.gpu._each import each


def observe(facts: FactsView) -> Fact:
    return each(facts, "gpu.row_remapper_histogram", lambda banks: banks["none"])


CHECK = Check(
    needs=("gpu.row_remapper_histogram",),
    observe=observe,
    accept=Equals(0),
    unit="banks",
    applies=(GPU,),
    remedy=manual("Plan the replacement with the vendor before the next uncorrectable error ends a job."),
    severity="high",
    name="without spare rows",
    part_of="gpu-row-remap-failed",
    cost="hardware",
)
