"""Disks that hold data read ahead too little for streaming.

Why it matters: Training reads large files from front to back. With the default of 128 KiB the disk sits idle between
small requests; a few MiB keep it busy. The tuned profiles for throughput and HPC set 4096 KiB.
Confirm by hand: findmnt -no SOURCE /data; cat /sys/block/DISK/queue/read_ahead_kb
Side effects of the fix: Random reads of small records (memory-mapped embeddings, key-value stores) fetch more than they use.
Sources: https://github.com/redhat-performance/tuned (profiles throughput-performance, hpc-compute) ;
https://docs.kernel.org/admin-guide/abi-stable.html (read_ahead_kb)
"""

from nodetune.checks.storage._places import data
from nodetune.expect import AtLeast
from nodetune.model import Check
from nodetune.remedies import block_queue
from nodetune.view import View

OWN_READ_AHEAD = ("btrfs",)
"""File systems over several disks, which do not follow the disk's setting."""


def observe(facts: View) -> dict[str, int]:
    places = data(facts["mounts.points"]).values()
    disks = {seen["disk"] for seen in places if seen["disk"] and seen["type"] not in OWN_READ_AHEAD}
    known = facts["mounts.read_ahead_kb"]
    return {disk: known[disk] for disk in sorted(disks & set(known))}


CHECK = Check(
    needs=("mounts.points", "mounts.read_ahead_kb"),
    observe=observe,
    accept=AtLeast(4096),
    set=4096,
    unit="KiB",
    remedy=block_queue("read_ahead_kb"),
    severity="low",
)
