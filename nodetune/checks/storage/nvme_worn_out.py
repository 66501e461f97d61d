"""An NVMe drive has nearly used up the writes that it is built for.

Why it matters: Beyond 100 % of its rated endurance the maker no longer vouches for data kept without power; checkpoint and
scratch drives get there first.
Confirm by hand: nvme smart-log /dev/nvme0 | grep percentage_used
Side effects of the fix: Replacing loses what is on it unless it is copied or mirrored.
Sources: https://nvmexpress.org/specifications/ (log page 02h) ; https://github.com/linux-nvme/nvme-cli
"""

from nodetune.conditions import BARE_METAL
from nodetune.expect import AtMost
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> dict[str, int]:
    return {name: seen["used_percent"] for name, seen in facts["block.smart"].items()}


CHECK = Check(
    needs=("block.smart",),
    observe=observe,
    accept=AtMost(95),
    unit="% of its endurance",
    applies=(BARE_METAL,),
    remedy=manual("Plan its replacement; until then keep nothing on it that exists nowhere else."),
    severity="low",
)
