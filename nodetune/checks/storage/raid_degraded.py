"""A software RAID array has lost a disk.

Why it matters: One more failure and the data is gone; reads and the later rebuild are slow meanwhile.
Confirm by hand: cat /proc/mdstat
Side effects of the fix: The rebuild takes disk bandwidth from jobs for hours.
Sources: https://docs.kernel.org/admin-guide/md.html ; https://raid.wiki.kernel.org/index.php/Replacing_a_failed_drive
"""

from typing import Any

from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

COMPLETE = "all disks present"
BROKEN = ("broken", "failed")


def observe(facts: View) -> dict[str, str]:
    return {
        name: _state(seen) for name, seen in facts["block.raid"].items() if seen["level"] not in (None, "", "container")
    }


def _state(seen: dict[str, Any]) -> str:
    if seen["state"] in BROKEN:
        return f"{seen['level']} {seen['state']}"
    if seen["degraded"]:
        doing = f", {seen['action']}" if seen["action"] not in (None, "", "idle") else ""
        return f"{seen['level']} without {seen['degraded']} of its disks{doing}"
    return COMPLETE


CHECK = Check(
    needs=("block.raid",),
    observe=observe,
    accept=Equals(COMPLETE),
    remedy=manual(
        "Find the disk that is missing (mdadm --detail /dev/mdX, dmesg), replace it, and mdadm /dev/mdX --add it."
    ),
    severity="high",
)
