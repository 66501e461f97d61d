"""GPUDirect Storage is configured but has no driver: it copies through host memory.

Why it matters: cuFile programs keep working without nvidia-fs or PCI P2PDMA, silently in compatibility mode: every read goes
through the CPU's memory, which is what they were written to avoid. Judged only where /etc/cufile.json
exists; the CUDA toolkit brings that file, so it may well be that nobody uses cuFile here.
Confirm by hand: /usr/local/cuda/gds/tools/gdscheck -p; lsmod | grep nvidia_fs
Side effects of the fix: The module must be rebuilt for each kernel (DKMS).
Sources: https://docs.nvidia.com/gpudirect-storage/api-reference-guide/topics/cufile-compatibility.html ;
https://docs.nvidia.com/gpudirect-storage/troubleshooting-guide/index.html
"""

from nodetune.conditions import BARE_METAL, GPU_ON_PCI
from nodetune.expect import OneOf
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> str:
    settings = facts["block.gds"]
    if "nvidia_fs" in facts["modules.loaded"]:
        return "nvidia-fs"
    return "PCI P2PDMA" if settings["p2pdma"] else "compatibility mode"


CHECK = Check(
    needs=("block.gds", "modules.loaded"),
    observe=observe,
    accept=OneOf(["nvidia-fs", "PCI P2PDMA"]),
    applies=(BARE_METAL, GPU_ON_PCI),
    remedy=manual(
        "Install nvidia-fs (package nvidia-fs or nvidia-gds), modprobe nvidia-fs, and name it in /etc/modules-load.d. On Linux 6.2 and "
        "newer with the open driver, use_pci_p2pdma in /etc/cufile.json serves local NVMe without it."
    ),
    severity="info",
)
