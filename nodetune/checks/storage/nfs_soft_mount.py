"""An NFS mount gives up when the server is slow (soft).

Why it matters: With the option soft, the client returns an error to the program after some retries. A program that does
not check every write silently loses data. A checkpoint may be cut off while the server restarts.
Confirm manually: nfsstat -m | grep soft
Side effects of the fix: With hard, programs wait until the server is back. Takes effect when it is mounted again.
Sources: https://man7.org/linux/man-pages/man5/nfs.5.html (soft, hard)
"""

from nodetune.api import Check, Equals, FactsView, manual


def observe(facts: FactsView) -> dict[str, str]:
    """Return soft or hard of each mount that may be written to."""
    points = facts["mounts.points"]
    written = [place for place in facts["mounts.nfs"] if place in points and "ro" not in points[place]["options"]]
    return {place: "hard" if facts["mounts.nfs"][place]["hard"] else "soft" for place in written}


CHECK = Check(
    needs=("mounts.nfs", "mounts.points"),
    observe=observe,
    accept=Equals("hard"),
    remedy=manual(
        "Remove soft and softerr from the mount's options (/etc/fstab or the automounter's map), unmount, and mount again."
    ),
    severity="low",
)
