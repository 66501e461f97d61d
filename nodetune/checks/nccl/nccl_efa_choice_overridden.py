"""A setting takes a choice from the EFA plugin that it makes better by itself.

Why it matters: aws-ofi-nccl knows the instance type and sets buffers, chunk sizes, NIC policy, tuner and topology file
for it, but only what is not set yet. Values from old guides (a protocol, a buffer size, FI_* names) keep it from that.
Confirm by hand: NCCL_DEBUG=INFO all_reduce_perf -b 8 -e 8 -g 1 | grep -E "NET/OFI|set by environment"
Side effects of the fix: Speed changes; measure all_reduce before and after on the same instances.
Sources: https://github.com/aws/aws-ofi-nccl (src/platform-aws.cpp, doc/efa-env-var.md)
"""

from typing import Any

from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.nccl import effects
from nodetune.remedies import manual
from nodetune.view import Missing, View


def overridden_choices(facts: View) -> Any:
    if not effects.has_efa(facts["nccl.plugins"]):
        raise Missing("no EFA plugin for NCCL on this host")
    return effects.against_efa(facts["nccl.settings"]) or []


CHECK = Check(
    needs=("nccl.settings", "nccl.plugins"),
    observe=overridden_choices,
    accept=Empty("choices left to the EFA plugin"),
    remedy=manual("Delete the line named, unless a measurement on this instance type says otherwise."),
    severity="info",
)
