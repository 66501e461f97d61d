"""nconnect of an NFS mount is too low for the network.

Why it matters: One CPU at a time serves a TCP connection, which fills only part of a fast link. nconnect spreads a
mount over several connections. Azure measured a job that took 8 hours with one connection in 5.5 hours with eight. Mounts of
homes and programs are not judged.
Confirm manually: nfsstat -m | grep -B1 nconnect; ss -tn dst :2049
Side effects of the fix: Takes effect only after all mounts from that server are unmounted: the first mount decides for
all.
Sources: https://man7.org/linux/man-pages/man5/nfs.5.html (nconnect) ;
https://learn.microsoft.com/en-us/azure/azure-netapp-files/performance-linux-mount-options
"""

from nodetune.api import AtLeast, Check, FactsView, When, manual
from nodetune.checks.storage._places import streams


def observe(facts: FactsView) -> dict[str, int]:
    return {
        path: mount["connections"]
        for path, mount in facts["mounts.nfs"].items()
        if mount["protocol"].startswith("tcp") and streams(path)
    }


CHECK = Check(
    needs=("mounts.nfs",),
    observe=observe,
    accept=AtLeast(4),
    unit="connections",
    applies=(When("derived.fastest_link_mbps", AtLeast(25_000), "no link of 25 Gb/s: one connection fills it"),),
    remedy=manual(
        "Add nconnect=8 to the options in /etc/fstab (or the automounter's map), unmount all mounts from that server, "
        "and mount again."
    ),
    severity="low",
)
