"""Shared memory at /dev/shm is small.

Why it matters: Ranks on one node exchange data through it (NCCL), and data loaders hand batches over in it. When it is
full, NCCL ends with "failed to extend /dev/shm/nccl-..." and PyTorch workers die with a bus error. The kernel's default
is half of the memory; a container's is 64 MiB.
Confirm by hand: df -h /dev/shm
Side effects of the fix: Memory is used only as files are written there, but then it cannot be reclaimed.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html ;
https://docs.kernel.org/filesystems/tmpfs.html
"""

from nodetune import show
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

GIB = 1 << 30
ENOUGH = 64 * GIB
IN_CONTAINER = GIB


def observe(facts: View) -> str:
    """The size where it is too small; 45 % leaves room for how the kernel rounds its half."""
    size = facts["limits.shm"]["size_bytes"]
    least = IN_CONTAINER if facts["host.container"] else min(ENOUGH, facts["memory.total_kb"] * 1024 * 45 // 100)
    return "" if size >= least else show.size(size)


CHECK = Check(
    needs=("limits.shm", "host.container", "memory.total_kb"),
    observe=observe,
    accept=Empty("half of the memory, or 64 GiB; in a container at least 1 GiB"),
    remedy=manual(
        "mount -o remount,size=50% /dev/shm, and in /etc/fstab: tmpfs /dev/shm tmpfs defaults,size=50% 0 0. "
        "For containers: docker run --shm-size=16g (or --ipc=host); in a pod an emptyDir with medium: Memory at /dev/shm"
    ),
    severity="high",
)
