"""A data file system lies on a hard disk.

Why it matters: A turning disk reads a few hundred MB/s in sequence and about a hundred random files a second: data loaders of
one GPU already wait for it.
Confirm by hand: lsblk -o NAME,ROTA,MOUNTPOINTS
Side effects of the fix: Data must be moved.
Sources: https://docs.kernel.org/admin-guide/abi-stable.html (queue/rotational) ;
https://docs.nvidia.com/deeplearning/dali/user-guide/docs/advanced_topics_performance_tuning.html
"""

from nodetune.checks.storage._places import data
from nodetune.conditions import BARE_METAL
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> dict[str, str]:
    points = data(facts["mounts.points"])
    kinds = {True: "hard disk", False: "solid state"}
    return {place: kinds[seen["rotational"]] for place, seen in points.items() if seen["rotational"] is not None}


CHECK = Check(
    needs=("mounts.points",),
    observe=observe,
    accept=Equals("solid state"),
    applies=(BARE_METAL,),
    remedy=manual(
        "Stage data sets on NVMe or on the parallel file system; waive this where the disk only keeps archives."
    ),
    severity="info",
)
