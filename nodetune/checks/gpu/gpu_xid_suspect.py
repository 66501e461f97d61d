"""The driver logged Xids that may announce a hardware failure.

Why it matters: A GPU survives NVLink errors that the driver calls Nonfatal, contained memory errors, retirements and,
from driver 590 on, a timeout of its firmware (119), but they often end a job. A few may mean nothing. Many on the same
GPU are the start of a link or memory fault. On NVLink, one GPU may be the culprit and all that log errors its victims:
gpu-xid-hardware names the one with a Fatal error.
Confirm manually: journalctl -k -b | grep -E 'NVRM: (Xid|.*RC watchdog)'
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html ;
https://github.com/marin-community/marin/issues/9086 (one GPU with a Fatal error, 63 victims) ;
https://github.com/NVIDIA/open-gpu-kernel-modules (kernel_gsp.c: Xid 119; kernel_rc_watchdog_callback.c)
"""

from __future__ import annotations

from functools import partial
from math import inf

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.checks.shared.kernel_events import UPTIME
from nodetune.checks.shared.xid_recovery import NEEDS, UNNAMED, require_gpu, slow_gsp, standing, without_xid
from nodetune.checks.shared.xids import WATCHDOG, by_gpu, suspect

LOCKED = "GPU is probably locked"


def observe(facts: FactsView) -> dict[str, list[str]] | list[str]:
    require_gpu(facts, "xid.events")
    events = standing(facts)
    found = by_gpu(events, partial(suspect, slow_gsp=slow_gsp(facts, events)))
    told = any(each["xid"] == WATCHDOG for each in events) or facts.readable("xid.reset_required") is None
    if not told and any(LOCKED in each["text"] for each in without_xid(facts)):
        found[UNNAMED] = [f"{LOCKED} (watchdog)"]
    return found or []


CHECK = Check(
    needs=("xid.events", "xid.reset_required", UPTIME, *NEEDS),
    observe=observe,
    log=inf,
    accept=Empty("no such Xid since the last reset"),
    remedy=manual(
        "Look the Xid up in NVIDIA's catalogue. For NVLink errors, compare nvidia-smi nvlink -e on both ends. If they "
        "return on one GPU, drain the node, reset the GPU and run the vendor's diagnostic."
    ),
    severity="medium",
    part_of=("gpu-recovery-needed", "gpu-lost", "gpu-missing", "gpu-xid-hardware", "gpu-reset-due", "nvlink-down"),
    cost="hardware",
)
