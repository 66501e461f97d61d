"""/dev/shm is nearly full.

Why it matters: Segments of crashed jobs stay until someone removes them or the node reboots. The next job fails at
start-up with "failed to extend /dev/shm/nccl-...". Until then the page cache has less memory.
Confirm manually: df -h /dev/shm; ls -lS /dev/shm | head
Side effects of the fix: Removing a segment in use does not affect its users, but new processes can no longer open it.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
"""

from nodetune.api import AtMost, Check, FactAbsentError, FactsView, manual


def observe(facts: FactsView) -> int:
    shm = facts["limits.shm"]
    if not shm["size_bytes"]:
        raise FactAbsentError("/dev/shm has no size")
    return int(100 - shm["free_bytes"] * 100 // shm["size_bytes"])


CHECK = Check(
    needs=("limits.shm",),
    observe=observe,
    accept=AtMost(80),
    unit="%",
    remedy=manual(
        "Remove files that no process has open (compare: ls -l /dev/shm; lsof /dev/shm), and do so in the scheduler's epilog"
    ),
    severity="medium",
    name="/dev/shm",
)
