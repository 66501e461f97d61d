"""A GPU that the node once had is missing.

Why it matters: A lost GPU may be gone from the PCI bus after the next reboot. Then every check of the GPUs that are left
passes. The guard remembers how many GPUs and network adapters the node had. NVLinks need no memory: a GPU names those that are down.
Healthy exception: A GPU that was exchanged, that has no driver, or that a virtual machine holds is on the bus. Not judged: a virtual
machine, which may be given fewer; an adapter, which may be in a reset; GPUs that the site file (gpu-count-unexpected), a label or the
machine type promises and the node never had; a memory that is damaged (remove it once the node is whole), absent or of another
mainboard or machine type: a reinstalled or diskless node starts with what it has then.
Confirm manually: lspci -d 10de: | wc -l; cat /var/lib/nodetune/guard/hardware.json
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
"""

from __future__ import annotations

from nodetune.api import Check, Empty, FactsView, Unread, repair
from nodetune.checks.shared import hardware_parts

MEMORY = "guard.hardware"


def observe(facts: FactsView) -> str | Unread:
    before, now = facts[MEMORY], hardware_parts.present(facts)
    missing, unsure = hardware_parts.judge(before, now, before.get("promised", 0), virtual=facts["host.virtual"])
    return Unread(f"{missing}: {unsure}") if unsure else missing


CHECK = Check(
    needs=(MEMORY, *hardware_parts.NEEDS, "host.virtual"),
    observe=observe,
    accept=Empty("all that it once had"),
    remedy=repair(
        "Drain the node. Power it off and on, check seating and power cables, read the BMC's event log, then open a case "
        "with the vendor. If the node is to stay smaller, waive this check in the site file, or make the guard forget: remove "
        "/var/lib/nodetune/guard/hardware.json, in Kubernetes the condition NodetuneHardware of the node."
    ),
    severity="critical",
    name="GPUs that were there",
    part_of=("gpu-lost", "gpu-missing"),
    stability="stable",
)
