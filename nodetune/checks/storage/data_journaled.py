"""A data file system writes all data to its journal first.

Why it matters: With data=journal, ext4 writes everything twice, and turns delayed allocation and direct I/O off. Scratch
data and checkpoints, which a job can write again, gain nothing by it.
Confirm manually: findmnt -t ext4 -o TARGET,FS-OPTIONS | grep data=journal
Side effects of the fix: After a crash, files that were being written may hold old or no data, as with ext4's default.
Sources: https://docs.kernel.org/admin-guide/ext4.html (data=journal) ;
https://git.zx2c4.com/linux-dev/commit/?id=56889787cfa77dfd96f0b3a3e6a4f26c2e4a5134
"""

from nodetune.api import Check, FactsView, OneOf, manual
from nodetune.checks.storage._places import written


def observe(facts: FactsView) -> dict[str, str]:
    """Return the mode of each ext4; the kernel shows no option for the default."""
    points = {path: mount for path, mount in written(facts["mounts.points"]).items() if mount["type"] == "ext4"}
    modes = {path: [one for one in mount["super_options"] if one.startswith("data=")] for path, mount in points.items()}
    return {path: (mode or ["data=ordered"])[0] for path, mode in modes.items()}


CHECK = Check(
    needs=("mounts.points",),
    observe=observe,
    accept=OneOf(["data=ordered", "data=writeback"]),
    remedy=manual(
        "Remove data=journal from the line in /etc/fstab (or tune2fs -o ^journal_data DEVICE, where tune2fs -l DEVICE lists "
        "journal_data), unmount, and mount again: a remount cannot change the mode."
    ),
    severity="low",
)
