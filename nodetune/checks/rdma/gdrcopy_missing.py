"""GDRCopy's kernel module is not loaded.

Why it matters: With gdrdrv, the CPU reads and writes small pieces of GPU memory without a copy engine. UCX, NVSHMEM and
OpenMPI use it for short messages, NCCL with NCCL_GDRCOPY_ENABLE=1. No other program uses it, so the check is off: a site that
needs it switches it on.
Healthy exception: GDRCopy needs GPUDirect RDMA, which GeForce cards and the GPU of a DGX Spark do not have.
Confirm manually: lsmod | grep gdrdrv; ls -l /dev/gdrdrv
Side effects of the fix: The module must be rebuilt for each kernel (DKMS).
Sources: https://github.com/NVIDIA/gdrcopy ;
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-gdrcopy-enable
"""

from __future__ import annotations

from nodetune.api import GPU_ON_PCI, RDMA, Absent, Check, Equals, FactsView, manual
from nodetune.checks.shared.gpu_cards import WITHOUT_GPUDIRECT, readable_names


def observe(facts: FactsView) -> str | Absent:
    names = readable_names(facts)
    if names and all(WITHOUT_GPUDIRECT.search(name) for name in names):
        return Absent("no GPU of this host can do GPUDirect RDMA")
    return "loaded" if "gdrdrv" in facts["modules.loaded"] else "not loaded"


CHECK = Check(
    needs=("modules.loaded", "gpu.names"),
    observe=observe,
    accept=Equals("loaded"),
    applies=(GPU_ON_PCI, RDMA),
    remedy=manual(
        "Install gdrdrv-dkms (Debian, Ubuntu) or gdrcopy-kmod (RHEL), of github.com/NVIDIA/gdrcopy, then: modprobe gdrdrv"
    ),
    severity="info",
)
