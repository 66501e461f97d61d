"""A file system that the system itself needs is nearly full.

Why it matters: Daemons fail in odd ways when / or /var is full: Slurm drains the node or loses job states, containers do not
start, logs stop.
Confirm by hand: df -h / /tmp /var /run; df -i /
Side effects of the fix: Whatever is deleted is gone.
Sources: https://man7.org/linux/man-pages/man1/df.1.html
"""

from nodetune.expect import AtMost
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

WATCHED = ("/", "/tmp", "/var", "/var/lib", "/var/log", "/var/tmp", "/run")


def observe(facts: View) -> dict[str, int]:
    usage = facts["mounts.usage"]
    return {place: max(usage[place]["percent"], usage[place]["inodes_percent"]) for place in WATCHED if place in usage}


CHECK = Check(
    needs=("mounts.usage",),
    observe=observe,
    accept=AtMost(95),
    unit="% used",
    remedy=manual("See what fills it (du -xh PLACE | sort -h | tail; df -i for inodes), and delete or move that."),
    severity="high",
)
