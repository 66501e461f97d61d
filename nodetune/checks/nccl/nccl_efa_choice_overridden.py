"""An NCCL setting overrides a choice of the EFA plugin.

Why it matters: aws-ofi-nccl detects the instance type and sets buffers, chunk sizes, NIC policy, tuner and topology
file for it, but only values that are not set yet. Values from old guides (a protocol, a buffer size, FI_* names)
prevent this.
Confirm manually: NCCL_DEBUG=INFO all_reduce_perf -b 8 -e 8 -g 1 | grep -E "NET/OFI|set by environment"
Side effects of the fix: Performance changes. Measure all_reduce before and after on the same instances.
Sources: https://github.com/aws/aws-ofi-nccl (src/platform-aws.cpp, doc/efa-env-var.md)
"""

from typing import Any

from nodetune.api import Check, Empty, FactAbsentError, FactsView, manual
from nodetune.checks.nccl._effects import against_efa, has_efa


def overridden_choices(facts: FactsView) -> Any:
    if not has_efa(facts["nccl.plugins"]):
        raise FactAbsentError("no EFA plugin for NCCL on this host")
    return against_efa(facts["nccl.settings"]) or []


CHECK = Check(
    needs=("nccl.settings", "nccl.plugins"),
    observe=overridden_choices,
    accept=Empty("no override of the EFA plugin"),
    remedy=manual("Delete the named line, unless a measurement on this instance type shows that it helps."),
    severity="info",
)
