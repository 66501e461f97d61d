"""/dev/shm is too small.

Why it matters: Ranks on one node exchange data through /dev/shm (NCCL), and data loaders pass batches in it. When it is
full, NCCL fails with "failed to extend /dev/shm/nccl-..." and PyTorch workers die with a bus error. The kernel's
default is half of the memory. A container's default is 64 MiB.
Healthy exception: Half of the memory is enough on a small host.
Confirm manually: df -h /dev/shm
Side effects of the fix: Memory is used only as files are written there, but the kernel cannot reclaim it then.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html ;
https://docs.kernel.org/filesystems/tmpfs.html
"""

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.foundation import text

GIB = 1 << 30
ENOUGH = 64 * GIB
IN_CONTAINER = GIB


def observe(facts: FactsView) -> str:
    """Return the size if it is too small. 45 % allows for how the kernel rounds half of the memory."""
    size = facts["limits.shm"]["size_bytes"]
    least = IN_CONTAINER if facts["host.container"] else min(ENOUGH, facts["memory.total_kb"] * 1024 * 45 // 100)
    return "" if size >= least else text.size(size)


CHECK = Check(
    needs=("limits.shm", "host.container", "memory.total_kb"),
    observe=observe,
    accept=Empty("half of the memory, or 64 GiB; in a container at least 1 GiB"),
    remedy=manual(
        "Run mount -o remount,size=50% /dev/shm, and add to /etc/fstab: tmpfs /dev/shm tmpfs rw,nosuid,nodev,size=50% 0 0. "
        "For containers: docker run --shm-size=16g (or --ipc=host). For pods: an emptyDir with medium: Memory at /dev/shm"
    ),
    severity="high",
    name="/dev/shm",
)
