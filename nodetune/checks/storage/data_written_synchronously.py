"""A data file system, or a mount of NFS, is mounted with sync.

Why it matters: With sync, every write waits for the disk or the server, as if each program called fsync after it. A measurement
here saw 16 to 702 times fewer files a second. Programs that need data on the disk call fsync themselves.
noac of NFS includes it: nfs-caches-nothing judges that.
Confirm manually: findmnt -O sync
Side effects of the fix: Data of the last seconds that no program flushed is lost if the host loses power, as on any other
mount.
Sources: https://man7.org/linux/man-pages/man8/mount.8.html (sync) ; https://man7.org/linux/man-pages/man2/fsync.2.html ;
https://man7.org/linux/man-pages/man5/nfs.5.html (sync, remount)
"""

from nodetune.api import Check, Equals, FactsView, mount_option
from nodetune.checks.storage._places import written

NFS = ("nfs", "nfs4")


def observe(facts: FactsView) -> dict[str, str]:
    points = facts["mounts.points"]
    nfs = {path: mount for path, mount in points.items() if mount["type"] in NFS and "ro" not in mount["options"]}
    return {
        path: "sync" if "sync" in (*mount["options"], *mount["super_options"]) else "async"
        for path, mount in (written(points) | nfs).items()
        if "noac" not in mount["super_options"]
    }


CHECK = Check(
    needs=("mounts.points",),
    observe=observe,
    accept=Equals("async"),
    set="async",
    remedy=mount_option("async"),
    severity="medium",
    cost="bandwidth",
)
