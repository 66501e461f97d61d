"""The driver logged an Xid that this version of nodetune does not know.

Why it matters: Drivers get new Xids. Such an Xid may report a fault that no check here judges.
Confirm manually: journalctl -k -b | grep 'NVRM: Xid'
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html ;
https://github.com/NVIDIA/open-gpu-kernel-modules (nverror.h of driver 595: the last one is 176)
"""

from __future__ import annotations

from math import inf

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.checks.shared.xid_recovery import NEEDS, require_gpu, standing
from nodetune.checks.shared.xids import LAST_KNOWN, by_gpu


def observe(facts: FactsView) -> dict[str, list[str]] | list[str]:
    require_gpu(facts, "xid.events")
    unknown = [each for each in standing(facts) if each["xid"] > LAST_KNOWN]
    return by_gpu(unknown, lambda each: each["text"][:80].strip() or "without a text") or []


CHECK = Check(
    needs=("xid.events", *NEEDS),
    observe=observe,
    log=inf,
    accept=Empty("only Xids that have a meaning here"),
    remedy=manual(
        "Look the Xid up in NVIDIA's catalogue, and update nodetune. Your site file can judge it until then (add, with "
        "xid: and its number)."
    ),
    severity="info",
)
