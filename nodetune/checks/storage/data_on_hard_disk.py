"""A data file system is on a hard disk.

Why it matters: A hard disk reads a few hundred MB/s sequentially and about a hundred random files per second. The data
loaders of one GPU already wait for it.
Confirm manually: lsblk -o NAME,ROTA,MOUNTPOINTS
Side effects of the fix: Data must be moved.
Sources: https://docs.kernel.org/admin-guide/abi-stable.html (queue/rotational) ;
https://docs.nvidia.com/deeplearning/dali/user-guide/docs/advanced_topics_performance_tuning.html
"""

from nodetune.api import BARE_METAL, Check, Equals, FactsView, manual
from nodetune.checks.storage._places import data


def observe(facts: FactsView) -> dict[str, str]:
    points = data(facts["mounts.points"])
    kinds = {True: "hard disk", False: "solid state"}
    return {path: kinds[mount["rotational"]] for path, mount in points.items() if mount["rotational"] is not None}


CHECK = Check(
    needs=("mounts.points",),
    observe=observe,
    accept=Equals("solid state"),
    applies=(BARE_METAL,),
    remedy=manual(
        "Stage data sets on NVMe or on the parallel file system. If the disk only keeps archives, waive this finding."
    ),
    severity="info",
)
