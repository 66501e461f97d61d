"""An NVMe drive reports a critical warning.

Why it matters: The drive itself reports that its spare blocks run out, that it is unreliable, too hot or read-only, or
that its power-loss protection has failed. Data on it is at risk, and it may stop in the middle of a job.
Healthy exception: The virtual drives of a cloud report no spare blocks.
Confirm manually: nvme smart-log /dev/nvme0   (critical_warning, available_spare)
Side effects of the fix: Replacement loses its data unless it is copied or mirrored.
Sources: https://nvmexpress.org/specifications/ (log page 02h) ; https://github.com/linux-nvme/nvme-cli
"""

from nodetune.api import BARE_METAL, Check, Equals, FactsView, manual

WARNINGS = (
    "spare blocks low",
    "too hot or too cold",
    "unreliable",
    "read-only",
    "power-loss protection failed",
    "persistent memory region unreliable",
)
FINE = "no warning"


def observe(facts: FactsView) -> dict[str, str]:
    return {name: _warnings(log) for name, log in facts["block.smart"].items()}


def _warnings(log: dict[str, int]) -> str:
    found = [text for bit, text in enumerate(WARNINGS) if log["critical_warning"] >> bit & 1]
    if not found and log["spare_percent"] < log["spare_threshold_percent"]:
        found = [f"{log['spare_percent']} % spare blocks left"]
    return ", ".join(found) or FINE


CHECK = Check(
    needs=("block.smart",),
    observe=observe,
    accept=Equals(FINE),
    applies=(BARE_METAL,),
    remedy=manual(
        "Copy what you need from the drive now, then have it replaced. If it is too hot, check the fans first."
    ),
    severity="high",
    cost="hardware",
)
