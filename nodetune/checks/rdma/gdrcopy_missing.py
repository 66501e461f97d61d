"""GDRCopy's kernel module is not loaded.

Why it matters: With gdrdrv, the CPU reads and writes small pieces of GPU memory without a copy engine. UCX, NVSHMEM and
OpenMPI use it for short messages, NCCL with NCCL_GDRCOPY_ENABLE=1. No other program uses it, so the check is off: a site that
needs it switches it on.
Confirm manually: lsmod | grep gdrdrv; ls -l /dev/gdrdrv
Side effects of the fix: The module must be rebuilt for each kernel (DKMS).
Sources: https://github.com/NVIDIA/gdrcopy ;
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-gdrcopy-enable
"""

from nodetune.api import GPU_ON_PCI, RDMA, Check, Equals, FactsView, manual


def observe(facts: FactsView) -> str:
    return "loaded" if "gdrdrv" in facts["modules.loaded"] else "not loaded"


CHECK = Check(
    needs=("modules.loaded",),
    observe=observe,
    accept=Equals("loaded"),
    applies=(GPU_ON_PCI, RDMA),
    remedy=manual(
        "Install gdrdrv-dkms (Debian, Ubuntu) or gdrcopy-kmod (RHEL), of github.com/NVIDIA/gdrcopy, then: modprobe gdrdrv"
    ),
    severity="info",
)
