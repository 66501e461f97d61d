"""The driver refuses work on a GPU before a reset, or the GPU's firmware is dead.

Why it matters: The driver logs this without an Xid, or after the log lost it: it answers calls with "reset required"
(NV_ERR_RESET_REQUIRED), it no longer prints each timeout of the GPU's firmware (GSP), or the firmware did not start.
New programs fail on the GPU although nvidia-smi may still list it. The check counts the last day, because the log does
not show when a GPU was reset.
Healthy exception: The GPU was reset since, or the driver was loaded again: it needs no recovery action now.
Confirm manually: journalctl -k -b | grep -E 'NV_ERR_RESET_REQUIRED|GSP'; nvidia-smi -q | grep -i 'recovery action'
Side effects of the fix: A GPU reset ends every program on the GPU.
Sources: https://github.com/NVIDIA/open-gpu-kernel-modules (kernel_gsp.c, alloc_free.c: PDB_PROP_GPU_IN_FATAL_ERROR) ;
https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html (Xid 119, 120)
"""

import re
from typing import Any

from nodetune.api import Check, Empty, FactsView, repair
from nodetune.checks.gpu._recovered import require_gpu
from nodetune.checks.shared.kernel_events import UPTIME

REASONS = {
    "NV_ERR_RESET_REQUIRED": "reset required (NV_ERR_RESET_REQUIRED)",
    "Rate limiting GSP RPC": "GSP does not answer",
    "GSP(-RM| core) unresponsive": "GSP does not answer",
    "boot attempts exceeded": "GSP does not start",
}
UNNAMED = "GPU not named"
DAY = 86400


def observe(facts: FactsView) -> dict[str, str] | list[str]:
    require_gpu(facts, "xid.reset_required")
    found: dict[str, set[str]] = {}
    for event in _standing(facts):
        reason = next((words for pattern, words in REASONS.items() if re.search(pattern, event["text"])), "")
        found.setdefault(event["bdf"] or UNNAMED, set()).add(reason or event["text"])
    return {bdf: ", ".join(sorted(reasons)) for bdf, reasons in found.items()} or []


def _standing(facts: FactsView) -> list[dict[str, Any]]:
    """Leave out GPUs that need no recovery action; a line that names no GPU counts while any other may need one."""
    places, actions = facts.readable("gpu.bdf", {}), facts.readable("gpu.recovery_action", {})
    sound = {places.get(gpu) for gpu, action in actions.items() if action == "none"}
    all_sound = bool(places) and sound >= set(places.values()) and len(places) >= len(facts.readable("pci.gpus", ()))
    since = facts[UPTIME] - DAY
    events = [each for each in facts["xid.reset_required"] if each["time"] > since]
    return [each for each in events if not (each["bdf"] in sound or (not each["bdf"] and all_sound))]


CHECK = Check(
    needs=("xid.reset_required", UPTIME, "gpu.recovery_action", "gpu.bdf", "pci.gpus"),
    observe=observe,
    accept=Empty("no work refused since the last reset"),
    remedy=repair(
        "Drain the node, save the output of nvidia-bug-report.sh, and reset the GPU (nvidia-smi -r -i INDEX) or "
        "reboot. If it comes back, update the driver, then open a case with the vendor."
    ),
    severity="high",
    part_of=("gpu-recovery-needed", "gpu-lost", "gpu-missing", "gpu-xid-hardware"),
)
