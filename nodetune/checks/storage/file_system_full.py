"""A system file system is nearly full.

Why it matters: Daemons fail in odd ways when / or /var is full. Slurm drains the node or loses job states, containers
do not start, and logs stop.
Healthy exception: Scratch space may be full.
Confirm manually: df -h / /tmp /var /run; df -i /; on OSTree hosts df -h /sysroot
Side effects of the fix: Whatever is deleted is gone.
Sources: https://man7.org/linux/man-pages/man1/df.1.html ; https://github.com/ostreedev/ostree/pull/1767
"""

from nodetune.api import AtMost, Check, FactsView, manual

WATCHED = ("/", "/tmp", "/var", "/var/lib", "/var/log", "/var/tmp", "/run", "/sysroot")
"""On OSTree hosts, / is an image, and /sysroot shows the disk that /etc and /var are on."""


def observe(facts: FactsView) -> dict[str, int]:
    usage = facts["mounts.usage"]
    return {path: max(usage[path]["percent"], usage[path]["inodes_percent"]) for path in WATCHED if path in usage}


CHECK = Check(
    needs=("mounts.usage",),
    observe=observe,
    accept=AtMost(95),
    unit="% used",
    remedy=manual("Find what fills it (du -xh PLACE | sort -h | tail; df -i for inodes), and delete or move that."),
    severity="high",
)
