"""An NVMe drive has media errors.

Why it matters: Each media error is a block that the drive's own correction could not recover: a read failed or
returned nothing. A growing count predicts a failure.
Confirm manually: nvme smart-log /dev/nvme0 | grep media_errors
Side effects of the fix: Replacement loses its data unless it is copied or mirrored.
Sources: https://nvmexpress.org/specifications/ (log page 02h) ; https://github.com/linux-nvme/nvme-cli
"""

from nodetune.api import BARE_METAL, Check, Equals, FactsView, manual


def observe(facts: FactsView) -> dict[str, int]:
    return {name: log["media_errors"] for name, log in facts["block.smart"].items()}


CHECK = Check(
    needs=("block.smart",),
    observe=observe,
    accept=Equals(0),
    unit="media errors",
    applies=(BARE_METAL,),
    remedy=manual(
        "Note the count and check again after some days: replace a drive whose count grows. Otherwise waive this "
        "finding."
    ),
    severity="medium",
    cost="hardware",
)
