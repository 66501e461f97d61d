"""An NFS mount reads or writes in small pieces.

Why it matters: Client and server agree on the largest piece that both support, usually 1 MiB. A mount with rsize or wsize
in its options, or a server with an old limit, stays below: each MiB then takes many requests. Mounts of homes and programs
are not judged.
Confirm manually: nfsstat -m | grep -E 'rsize|wsize'
Side effects of the fix: Takes effect when the file system is mounted again.
Sources: https://man7.org/linux/man-pages/man5/nfs.5.html (rsize, wsize) ;
https://learn.microsoft.com/en-us/azure/azure-netapp-files/performance-linux-mount-options
"""

from typing import Any

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.checks.storage._places import streams

SMALLEST = 262144


def observe(facts: FactsView) -> dict[str, str]:
    return {place: _small(mount) for place, mount in facts["mounts.nfs"].items() if streams(place)}


def _small(mount: dict[str, Any]) -> str:
    small = [f"{name} {mount[name]}" for name in ("rsize", "wsize") if 0 < mount[name] < SMALLEST]
    return ", ".join(small)


def cause(facts: FactsView, subjects: tuple[str, ...]) -> str:
    """Name the files whose options ask for the size: without such an option, the server limits it."""
    configured = facts["mounts.configured"]
    places = [configured[place] for place in subjects if place in configured]
    asked = [each for each in places if any(one.startswith(("rsize=", "wsize=")) for one in each["options"])]
    return "; ".join(f"set by {each['file']} line {each['line']}" for each in asked)


CHECK = Check(
    needs=("mounts.nfs", "mounts.configured"),
    observe=observe,
    cause=cause,
    accept=Empty("at least 262144 bytes"),
    remedy=manual(
        "Remove rsize= and wsize= from the mount's options (/etc/fstab or the automounter's map), unmount, and mount "
        "again. Otherwise, the server limits it: raise it there (knfsd: /proc/fs/nfsd/max_block_size, with "
        "nfsd stopped)."
    ),
    severity="low",
)
