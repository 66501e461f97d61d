"""A local file system is mounted without write barriers.

Why it matters: Without barriers, a disk may write the journal's commit before the journal. After a power failure, the file
system can be damaged, checkpoints included. Barriers cost little on drives that lose nothing (NVMe with capacitors): they
finish a flush at once.
Confirm manually: findmnt -o TARGET,FS-OPTIONS | grep -E 'nobarrier|barrier=0'
Side effects of the fix: fsync waits for the disk again.
Sources: https://docs.kernel.org/admin-guide/ext4.html (barrier) ; https://man7.org/linux/man-pages/man5/ext4.5.html
"""

from nodetune.api import Check, Equals, FactsView, mount_option
from nodetune.checks.storage._places import local

OFF = {"nobarrier", "barrier=0"}
WITH_THE_OPTION = ("ext3", "ext4", "btrfs")


def observe(facts: FactsView) -> dict[str, str]:
    """Return barrier or nobarrier of each file system that may be written to; XFS has no such option any more."""
    points = {path: mount for path, mount in local(facts["mounts.points"]).items() if mount["type"] in WITH_THE_OPTION}
    return {
        path: "nobarrier" if OFF & set(mount["super_options"]) else "barrier"
        for path, mount in points.items()
        if "ro" not in mount["options"]
    }


CHECK = Check(
    needs=("mounts.points",),
    observe=observe,
    accept=Equals("barrier"),
    set="barrier",
    remedy=mount_option("barrier"),
    severity="low",
)
