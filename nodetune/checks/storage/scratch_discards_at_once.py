"""A data file system tells the drive of every deleted block at once.

Why it matters: With the mount option discard each deletion sends TRIM commands in the path of other I/O; clearing a scratch
area of many files then slows every reader. A weekly fstrim does the same work when nobody waits.
Confirm by hand: findmnt -o TARGET,FS-OPTIONS | grep -w discard; systemctl is-enabled fstrim.timer
Side effects of the fix: Freed blocks reach the drive only when fstrim runs: see that fstrim.timer is enabled.
Sources: https://docs.redhat.com/en/documentation/red_hat_enterprise_linux/9/html/managing_file_systems/discarding-unused-blocks_managing-file-systems ;
https://man7.org/linux/man-pages/man8/fstrim.8.html
"""

from nodetune.checks.storage._places import data
from nodetune.conditions import BARE_METAL
from nodetune.expect import Equals
from nodetune.model import Check
from nodetune.remedies import mount_option
from nodetune.view import View

AT_ONCE = ("discard", "discard=sync")


def observe(facts: View) -> dict[str, str]:
    points = data(facts["mounts.points"])
    return {
        place: "discard" if set(AT_ONCE) & set(seen["super_options"]) else "nodiscard" for place, seen in points.items()
    }


CHECK = Check(
    needs=("mounts.points",),
    observe=observe,
    accept=Equals("nodiscard"),
    set="nodiscard",
    applies=(BARE_METAL,),
    remedy=mount_option("nodiscard"),
    severity="low",
)
