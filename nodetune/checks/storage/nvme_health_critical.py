"""An NVMe drive warns that it is failing.

Why it matters: The drive itself says that its spare blocks run out, that it is unreliable, too hot, read-only, or that its
power-loss protection is gone. Data on it is at risk and it may stop in the middle of a job.
Confirm by hand: nvme smart-log /dev/nvme0   (critical_warning, available_spare)
Side effects of the fix: Replacing loses what is on it unless it is copied or mirrored.
Sources: https://nvmexpress.org/specifications/ (log page 02h) ; https://github.com/linux-nvme/nvme-cli
"""

from nodetune.conditions import BARE_METAL
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

WARNINGS = (
    "spare blocks low",
    "too hot or too cold",
    "unreliable",
    "read-only",
    "power-loss protection failed",
    "persistent memory region unreliable",
)
FINE = "no warning"


def observe(facts: View) -> dict[str, str]:
    return {name: _warnings(seen) for name, seen in facts["block.smart"].items()}


def _warnings(seen: dict[str, int]) -> str:
    found = [text for bit, text in enumerate(WARNINGS) if seen["critical_warning"] >> bit & 1]
    if not found and seen["spare_percent"] < seen["spare_threshold_percent"]:
        found = [f"{seen['spare_percent']} % spare blocks left"]
    return ", ".join(found) or FINE


CHECK = Check(
    needs=("block.smart",),
    observe=observe,
    accept=Equals(FINE),
    applies=(BARE_METAL,),
    remedy=manual(
        "Copy what you need from the drive now, then have it replaced; when it is too hot, look at the fans first."
    ),
    severity="high",
)
