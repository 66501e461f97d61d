"""An NVMe drive has nearly reached its rated endurance.

Why it matters: Beyond 100 % of the rated endurance, the manufacturer no longer guarantees data kept without power.
Checkpoint and scratch drives get there first.
Confirm manually: nvme smart-log /dev/nvme0 | grep percentage_used
Side effects of the fix: Replacement loses its data unless it is copied or mirrored.
Sources: https://nvmexpress.org/specifications/ (log page 02h) ; https://github.com/linux-nvme/nvme-cli
"""

from nodetune.api import BARE_METAL, AtMost, Check, FactsView, manual


def observe(facts: FactsView) -> dict[str, int]:
    return {name: log["used_percent"] for name, log in facts["block.smart"].items()}


CHECK = Check(
    needs=("block.smart",),
    observe=observe,
    accept=AtMost(95),
    unit="% of its endurance",
    applies=(BARE_METAL,),
    remedy=manual("Plan its replacement. Until then, keep nothing on it that exists nowhere else."),
    severity="low",
    cost="hardware",
)
