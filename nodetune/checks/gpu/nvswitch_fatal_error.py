"""An NVSwitch reported a fatal error.

Why it matters: The switch has stopped traffic on one link or on all of them. Jobs that use NVLink hang or fail until
the GPUs and switches are reset together.
Healthy exception: The switch handles non-fatal SXids itself.
Does not gate: The kernel log does not show when the switches were reset: a repaired node would be held until the
driver is loaded again.
Confirm manually: journalctl -k -b | grep SXid
Side effects of the fix: Resetting GPUs and NVSwitches ends every GPU program on the node.
Sources: https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html
"""

from __future__ import annotations

from math import inf

from nodetune.api import Check, Empty, FactsView, repair
from nodetune.checks.shared.xid_recovery import require_gpu


def observe(facts: FactsView) -> dict[str, str] | list[str]:
    require_gpu(facts, "xid.nvswitch")
    found: dict[str, dict[str, None]] = {}
    for event in facts["xid.nvswitch"]:
        if event["text"].startswith("Fatal"):
            found.setdefault(event["bdf"], {})[f"SXid {event['xid']} {event['text']}"] = None
    return {bdf: "; ".join(texts) for bdf, texts in found.items()} or []


CHECK = Check(
    needs=("xid.nvswitch", "pci.gpus"),
    observe=observe,
    log=inf,
    accept=Empty("no fatal SXid since the driver was loaded"),
    remedy=repair(
        "Drain the node, stop Fabric Manager, reset all GPUs and switches (nvidia-smi -r) and start it again, or "
        "reboot. If the same switch fails again, open a case with the vendor."
    ),
    severity="critical",
)
