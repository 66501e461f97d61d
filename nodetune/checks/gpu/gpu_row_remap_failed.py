"""A GPU failed to remap a bad memory row.

Why it matters: The spare rows of a bank are used up, or the repair was refused. Uncorrectable errors at that location
will come back. This flag is NVIDIA's own sign that the GPU qualifies for replacement.
Healthy exception: A GPU that remapped rows, or will do so at the next reset, repairs itself as designed.
Confirm manually: nvidia-smi --query-remapped-rows=gpu_bus_id,remapped_rows.failure --format=csv
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/error-recovery-and-response-flags.html ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune.api import GPU, Check, Equals, Fact, FactsView, repair
from nodetune.checks.gpu._each import each


def observe(facts: FactsView) -> Fact:
    return each(facts, "gpu.remapped_rows", lambda rows: rows["failure"])


CHECK = Check(
    needs=("gpu.remapped_rows",),
    observe=observe,
    accept=Equals(wanted=False),
    applies=(GPU,),
    remedy=repair("Take the GPU out of service, run the vendor's field diagnostic and ask for a replacement."),
    severity="critical",
    name="row remap failed",
    stability="stable",
)
