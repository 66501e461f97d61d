"""A software RAID array is degraded.

Why it matters: One more failure loses the data. Meanwhile reads, and later the rebuild, are slow.
Healthy exception: RAID 0 has no redundancy to lose, and an array may be under its regular check.
Confirm manually: cat /proc/mdstat
Side effects of the fix: The rebuild takes disk bandwidth from jobs for hours.
Sources: https://docs.kernel.org/admin-guide/md.html ; https://raid.wiki.kernel.org/index.php/Replacing_a_failed_drive
"""

from typing import Any

from nodetune.api import Check, Equals, FactsView, manual

COMPLETE = "all disks present"
BROKEN = ("broken", "failed")


def observe(facts: FactsView) -> dict[str, str]:
    return {
        name: _state(array)
        for name, array in facts["block.raid"].items()
        if array["level"] not in (None, "", "container")
    }


def _state(array: dict[str, Any]) -> str:
    if array["state"] in BROKEN:
        return f"{array['level']} {array['state']}"
    if array["degraded"]:
        doing = f", {array['action']}" if array["action"] not in (None, "", "idle") else ""
        return f"{array['level']} without {array['degraded']} of its disks{doing}"
    return COMPLETE


CHECK = Check(
    needs=("block.raid",),
    observe=observe,
    accept=Equals(COMPLETE),
    remedy=manual("Find the missing disk (mdadm --detail /dev/mdX, dmesg), replace it, and mdadm /dev/mdX --add it."),
    severity="high",
    cost="hardware",
)
