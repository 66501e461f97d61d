"""Shared memory at /dev/shm is nearly full.

Why it matters: Segments that crashed jobs left behind stay until someone removes them or the node reboots. The next job
fails at its start with "failed to extend /dev/shm/nccl-...", and the memory is missing from the page cache meanwhile.
Confirm by hand: df -h /dev/shm; ls -lS /dev/shm | head
Side effects of the fix: Removing a segment that is in use does not hurt its users, but newcomers no longer find it.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
"""

from nodetune.expect import AtMost
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import Missing, View


def observe(facts: View) -> int:
    shm = facts["limits.shm"]
    if not shm["size_bytes"]:
        raise Missing("/dev/shm has no size")
    return int(100 - shm["free_bytes"] * 100 // shm["size_bytes"])


CHECK = Check(
    needs=("limits.shm",),
    observe=observe,
    accept=AtMost(80),
    unit="%",
    remedy=manual(
        "Remove what no process has open (compare: ls -l /dev/shm; lsof /dev/shm), and do so in the scheduler's epilog"
    ),
    severity="medium",
)
