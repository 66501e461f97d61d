"""nconnect of an NFS mount is too low for the network.

Why it matters: One CPU at a time serves a TCP connection, which fills only part of a fast link. nconnect spreads a
mount over several connections. Azure measured a job that took 8 hours with one connection in 5.5 hours with eight. Mounts of
homes and programs are not judged.
Confirm manually: nfsstat -m | grep -B1 nconnect; ss -tn dst :2049
Side effects of the fix: Takes effect at the next boot, or after all mounts from that server are unmounted: the first mount
decides for all. So the option is set for each mount from that server, homes included. Kernels before 5.3 refuse it, and
are left alone.
Sources: https://man7.org/linux/man-pages/man5/nfs.5.html (nconnect) ;
https://learn.microsoft.com/en-us/azure/azure-netapp-files/performance-linux-mount-options
"""

from nodetune.api import AtLeast, Check, FactsView, When, nfs_option
from nodetune.checks.storage._places import streams


def observe(facts: FactsView) -> dict[str, int]:
    return {
        path: mount["connections"]
        for path, mount in facts["mounts.nfs"].items()
        if mount["protocol"].startswith("tcp") and streams(path)
    }


def cause(facts: FactsView, subjects: tuple[str, ...]) -> str:
    """Name the places that already ask for more connections: the mount is older, or another one decided."""
    configured = {place: each for place, each in facts["mounts.configured"].items() if place in subjects}
    asked = [each for each in configured.values() if any(one.startswith("nconnect=") for one in each["options"])]
    places = ", ".join(f"{each['file']} line {each['line']}" for each in asked)
    return f"{places} sets nconnect, which waits until all mounts from the server are unmounted" if places else ""


CHECK = Check(
    needs=("mounts.nfs", "mounts.configured"),
    observe=observe,
    cause=cause,
    accept=AtLeast(4),
    set=8,
    unit="connections",
    applies=(When("derived.fastest_link_mbps", AtLeast(25_000), "no link of 25 Gb/s: one connection fills it"),),
    remedy=nfs_option("nconnect"),
    severity="low",
)
