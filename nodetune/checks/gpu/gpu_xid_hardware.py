"""The driver logged a GPU Xid that calls for a reset or a repair.

Why it matters: These Xids come from the GPU, its memory, its firmware or its link to the host, never from a program
alone. The check counts those since the GPU's last recovery or the last driver load. It ignores Xids of programs (13,
31, 43, 45), and an ECC error (48) that the GPU contained (94 and no 95), but not what the driver asks for after any of
them: a reset or a reboot (154). A GPU has recovered if it needed an action
(154) and needs none now, if it fell off the bus (79) and answers again, or if it counts no uncorrected errors (48, 95)
since its last reset.
Healthy exception: The GPU contained the error (Xid 94 and no 95), a program caused the Xid, or the GPU has recovered
since.
Does not gate: The kernel log shows what happened, not the current state of the GPU, and a reset is not logged: a
repaired GPU
could be held until the driver is loaded again. What such a fault leaves behind gates: gpu-lost and gpu-missing
after Xid 79, gpu-recovery-needed after Xid 95.
Confirm manually: journalctl -k -b | grep -E 'NVRM: Xid|fallen off the bus'
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html ;
https://github.com/NVIDIA/NVSentinel/pull/1240 (a log does not show a reset) ;
https://github.com/NVIDIA/open-gpu-kernel-modules (gpu.c: no Xid 154 after initialisation) ; https://github.com/scitix/sichek/pull/121
"""

import re
from typing import Any

from nodetune.api import Check, Empty, FactsView, repair
from nodetune.checks.gpu._recovered import NEEDS, RECOVERY_ACTION_CHANGED, answering, require_gpu, standing
from nodetune.checks.gpu._xids import HARDWARE, by_gpu

RESET_OR_REBOOT = re.compile(r" to 0x[12] ")


def observe(facts: FactsView) -> dict[str, list[str]] | list[str]:
    require_gpu(facts, "xid.events", "xid.fallen_off_bus")
    events = standing(facts)
    contained = {each["bdf"] for each in events if each["xid"] == 94}
    contained -= {each["bdf"] for each in events if each["xid"] == 95}
    others = [each for each in events if each["xid"] != RECOVERY_ACTION_CHANGED]
    counted = [each for each in others if each["xid"] != 48 or each["bdf"] not in contained]
    found = by_gpu([*counted, *_asked(events)], HARDWARE)
    alive = answering(facts)
    for event in (each for each in facts.readable("xid.fallen_off_bus", ()) if each["bdf"] not in alive):
        found.setdefault(event["bdf"], ["has fallen off the bus"])
    return found or []


def _asked(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the last word of the driver on each GPU that needs a reset or a reboot."""
    last = {each["bdf"]: each for each in events if each["xid"] == RECOVERY_ACTION_CHANGED}
    return [each for each in last.values() if RESET_OR_REBOOT.search(each["text"])]


CHECK = Check(
    needs=("xid.events", "xid.fallen_off_bus", *NEEDS),
    observe=observe,
    accept=Empty("no such Xid since the last reset"),
    remedy=repair(
        "Drain the node and look the Xid up in NVIDIA's catalogue, which names the action for each generation: "
        "usually a GPU reset (nvidia-smi -r), for 79 a power cycle. If the fault comes back, open a case with the "
        "vendor and attach the output of nvidia-bug-report.sh."
    ),
    severity="critical",
    part_of=("gpu-recovery-needed", "gpu-lost", "gpu-missing", "gpu-row-remap-failed", "pci-device-not-answering"),
)
