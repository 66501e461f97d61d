"""An NVMe drive could not read back data that it had stored.

Why it matters: Each media error is a block that the drive's own correction could not save: a read failed or returned nothing.
A number that grows foretells a failure.
Confirm by hand: nvme smart-log /dev/nvme0 | grep media_errors
Side effects of the fix: Replacing loses what is on it unless it is copied or mirrored.
Sources: https://nvmexpress.org/specifications/ (log page 02h) ; https://github.com/linux-nvme/nvme-cli
"""

from nodetune.conditions import BARE_METAL
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> dict[str, int]:
    return {name: seen["media_errors"] for name, seen in facts["block.smart"].items()}


CHECK = Check(
    needs=("block.smart",),
    observe=observe,
    accept=Equals(0),
    unit="media errors",
    applies=(BARE_METAL,),
    remedy=manual(
        "Note the number and look again after some days: a drive on which it grows is to be replaced. Otherwise waive it."
    ),
    severity="medium",
)
