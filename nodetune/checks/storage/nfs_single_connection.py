"""An NFS mount has too few connections for the network below it.

Why it matters: One TCP connection is served by one CPU at a time and fills only part of a fast link. nconnect spreads a
mount over several: Azure measured a job that took 8 hours at one connection in 5.5 hours at eight.
Confirm by hand: nfsstat -m | grep -B1 nconnect; ss -tn dst :2049
Side effects of the fix: Takes effect only when all mounts from that server are unmounted first: the first one decides for all.
Sources: https://man7.org/linux/man-pages/man5/nfs.5.html (nconnect) ;
https://learn.microsoft.com/en-us/azure/azure-netapp-files/performance-linux-mount-options
"""

from nodetune.expect import AtLeast
from nodetune.model import Check, When
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> dict[str, int]:
    return {
        place: seen["connections"] for place, seen in facts["mounts.nfs"].items() if seen["protocol"].startswith("tcp")
    }


CHECK = Check(
    needs=("mounts.nfs",),
    observe=observe,
    accept=AtLeast(4),
    unit="connections",
    applies=(When("derived.fastest_link_mbps", AtLeast(25_000), "no link of 25 Gb/s: one connection fills it"),),
    remedy=manual(
        "Add nconnect=8 to the options in /etc/fstab (or the automounter's map), unmount all from that server, mount again."
    ),
    severity="low",
)
