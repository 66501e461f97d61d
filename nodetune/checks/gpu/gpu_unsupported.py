"""The installed driver does not support a GPU.

Why it matters: The driver ignores the GPU, so nvidia-smi does not list it and no job can use it. The open kernel modules
do not support GPUs older than Turing, and no driver supports GPUs that are newer than itself. The check reports what the
driver logged when it was loaded, for GPUs that still have no driver.
Confirm manually: journalctl -k -b | grep -A2 'installed in this system is'; lspci -k -d 10de:
Side effects of the fix: The fix needs other packages and a reboot.
Sources: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/kernel-modules.html ;
https://github.com/NVIDIA/open-gpu-kernel-modules/issues/696
"""

from __future__ import annotations

import re

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.checks.shared.xid_recovery import NOT_SUPPORTED, require_gpu, without_driver


def observe(facts: FactsView) -> dict[str, str] | list[str]:
    require_gpu(facts, "xid.reset_required")
    refused = [event for event in without_driver(facts) if re.search(NOT_SUPPORTED, event["text"])]
    return {event["bdf"]: _by(event["text"]) for event in refused} or []


def _by(text: str) -> str:
    return "by the open kernel modules" if "by open" in text else "by this driver release"


CHECK = Check(
    needs=("xid.reset_required", "pci.gpus", "pci.devices"),
    observe=observe,
    accept=Empty("every GPU is supported"),
    remedy=manual(
        "If jobs are to use the GPU, install a driver that supports it: the proprietary kernel modules for one older than "
        "Turing, a newer release for a newer one. Otherwise take the card out, or waive this check for the host."
    ),
    severity="medium",
    part_of="gpu-missing",
)
