"""The driver refuses a GPU or work on it before a reset, or has lost it, or the GPU or its firmware does not start.

Why it matters: The driver logs this without an Xid, or after the log lost it: it answers calls with "reset required"
(NV_ERR_RESET_REQUIRED) or "lost from the bus" (NV_ERR_GPU_IS_LOST, status 0x0000000f), or marks the GPU for a reset. It
no longer prints each timeout of the GPU's firmware (GSP), or found at one that the memory of the GPU hangs. The firmware or
the whole GPU did not start (RmInitAdapter failed), or the driver of CUDA's memory (UVM) stopped until a reboot.
New programs fail on the GPU although nvidia-smi may still list it. The check counts the last day, because the log does
not show when a GPU was reset. It also reports a GPU that the driver did not take when it was loaded, and that still has
no driver.
Healthy exception: The GPU was reset since, or the driver was loaded again: it needs no recovery action now, or it
answers after it failed to start or was lost. A heartbeat of the firmware that timed out says nothing. A virtual machine or another driver has the GPU that the driver did not take.
Confirm manually: journalctl -k -b | grep -E 'NV_ERR_|0x0000000f|GSP|Subsystem|marked for reset|RmInitAdapter|BAR|probe'; nvidia-smi -q | grep -i 'recovery action'
Side effects of the fix: A GPU reset ends every program on the GPU.
Sources: https://github.com/NVIDIA/open-gpu-kernel-modules (kernel_gsp.c, alloc_free.c: PDB_PROP_GPU_IN_FATAL_ERROR; osinit.c: RmInitAdapter; nv-pci.c: BAR) ;
https://github.com/NVIDIA/open-gpu-kernel-modules/issues/1230 (memory subsystem) ;
https://github.com/NVIDIA/open-gpu-kernel-modules/issues/688 (lost without an Xid) ;
https://github.com/NVIDIA/open-gpu-kernel-modules/issues/1342 (UVM) ;
https://github.com/NVIDIA/open-gpu-kernel-modules/issues/1064 (heartbeat) ; https://github.com/NVIDIA/gpu-operator/issues/492 ;
https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html (Xid 119, 120)
"""

from __future__ import annotations

import re

from nodetune.api import Check, Empty, FactsView, repair
from nodetune.checks.shared.kernel_events import UPTIME
from nodetune.checks.shared.xid_recovery import (
    DAY,
    IS_LOST,
    NOT_SUPPORTED,
    STARTS_NOT,
    UNNAMED,
    require_gpu,
    without_driver,
    without_xid,
)

REASONS = {
    "NV_ERR_RESET_REQUIRED": "reset required (NV_ERR_RESET_REQUIRED)",
    "marked for reset": "the driver marked the GPU for reset",
    "Rate limiting GSP RPC": "GSP does not answer",
    "GSP(-RM| core) unresponsive": "GSP does not answer",
    "boot attempts exceeded": "GSP does not start",
    IS_LOST: "the driver lost the GPU (NV_ERR_GPU_IS_LOST)",
    "Memory Subsystem Error": "the memory subsystem of the GPU does not answer",
    "uvm encountered": "UVM stopped after a fatal error: reboot",
    STARTS_NOT: "the GPU does not start (RmInitAdapter failed)",
}
NOT_TAKEN = {
    r"(BAR\d is \d+M)": "the GPU got no address space",
    r"probe.* failed with error": "the driver did not take the GPU",
}


def observe(facts: FactsView) -> dict[str, str] | list[str]:
    require_gpu(facts, "xid.reset_required")
    found: dict[str, set[str]] = {}
    for event in without_xid(facts):
        reasons = {words for pattern, words in REASONS.items() if re.search(pattern, event["text"])}
        if reasons:
            found.setdefault(event["bdf"] or UNNAMED, set()).update(reasons)
    for bdf, reason in _not_taken(facts).items():
        found.setdefault(bdf, set()).add(reason)
    return {bdf: ", ".join(sorted(reasons)) for bdf, reasons in found.items()} or []


def _not_taken(facts: FactsView) -> dict[str, str]:
    """Return GPU → why the driver did not take it, without GPUs that it does not support: gpu-unsupported reports these."""
    events = without_driver(facts)
    unsupported = {event["bdf"] for event in events if re.search(NOT_SUPPORTED, event["text"])}
    found: dict[str, str] = {}
    for pattern, words in NOT_TAKEN.items():  # the cause first
        for event in events:
            cause = re.search(pattern, event["text"])
            if cause and event["bdf"] not in unsupported:
                found.setdefault(event["bdf"], " ".join([words, *(f"({part})" for part in cause.groups())]))
    return found


CHECK = Check(
    needs=("xid.reset_required", UPTIME, "gpu.recovery_action", "gpu.access", "gpu.bdf", "pci.gpus", "pci.devices"),
    observe=observe,
    log=DAY,
    accept=Empty("no work refused since the last reset"),
    remedy=repair(
        "Drain the node, save the output of nvidia-bug-report.sh, and reset the GPU (nvidia-smi -r -i INDEX) or "
        "reboot. If it comes back, update the driver, then open a case with the vendor."
    ),
    severity="high",
    part_of=("gpu-recovery-needed", "gpu-lost", "gpu-missing", "gpu-xid-hardware"),
)
