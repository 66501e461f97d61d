"""The read-ahead of an NFS mount is too small for streaming.

Why it matters: Since Linux 5.4, NFS mounts start with 128 KiB; before, 15 times the read size was usual. Each stream
then waits for the server after every few requests. Azure recommends 15 MiB for large files.
Homes and programs are small files, for which the kernel's default is right: their mounts are not judged.
Confirm manually: mountpoint -d /PLACE; cat /sys/class/bdi/MAJOR:MINOR/read_ahead_kb
Side effects of the fix: Random reads of small records fetch more than they use. Files that are open keep the old value. A mount
point with a blank in its name is left alone.
Sources: https://learn.microsoft.com/en-us/azure/storage/files/nfs-performance ;
https://man7.org/linux/man-pages/man5/nfsrahead.5.html
"""

from nodetune.api import AtLeast, Check, Each, Fact, FactsView, nfs_read_ahead
from nodetune.checks.storage._places import streams

READ_AHEAD = "mounts.nfs_read_ahead_kb"


def observe(facts: FactsView) -> Fact:
    fact = facts.fact(READ_AHEAD)
    return Each({place: one for place, one in fact.of.items() if streams(place)}) if isinstance(fact, Each) else fact


CHECK = Check(
    needs=(READ_AHEAD,),
    observe=observe,
    accept=AtLeast(4096),
    set=15360,
    unit="KiB",
    remedy=nfs_read_ahead(),
    severity="low",
    name="read-ahead",
)
