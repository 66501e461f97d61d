"""A data file system is mounted with discard.

Why it matters: With the mount option discard, each deletion sends TRIM commands in the path of other I/O. Clearing a
scratch area of many files then slows every reader. A weekly fstrim does the same work when nobody waits.
Confirm manually: findmnt -o TARGET,FS-OPTIONS | grep -w discard; systemctl is-enabled fstrim.timer
Side effects of the fix: Freed blocks reach the drive only when fstrim runs: make sure that fstrim.timer is enabled.
Sources: https://docs.redhat.com/en/documentation/red_hat_enterprise_linux/9/html/managing_file_systems/discarding-unused-blocks_managing-file-systems ;
https://man7.org/linux/man-pages/man8/fstrim.8.html
"""

from nodetune.api import BARE_METAL, Check, Equals, FactsView, mount_option
from nodetune.checks.storage._places import written

AT_ONCE = ("discard", "discard=sync")


def observe(facts: FactsView) -> dict[str, str]:
    points = written(facts["mounts.points"])
    return {
        path: "discard" if set(AT_ONCE) & set(mount["super_options"]) else "nodiscard" for path, mount in points.items()
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
