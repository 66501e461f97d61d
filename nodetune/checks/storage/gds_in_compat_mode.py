"""GPUDirect Storage runs in compatibility mode.

Why it matters: Without nvidia-fs or PCI P2PDMA, cuFile programs keep working, but silently in compatibility mode.
Every read goes through host memory, which these programs were written to avoid. If cufile.json forbids that mode, cuFile
calls fail instead. The direct path also needs PCI peer-to-peer traffic: other checks judge the IOMMU and ACS. The check
applies only where /etc/cufile.json exists. The CUDA toolkit installs that file, so possibly nobody uses cuFile here.
Confirm manually: /usr/local/cuda/gds/tools/gdscheck -p; lsmod | grep nvidia_fs
Side effects of the fix: The module must be rebuilt for each kernel (DKMS).
Sources: https://docs.nvidia.com/gpudirect-storage/api-reference-guide/topics/cufile-compatibility.html ;
https://docs.nvidia.com/gpudirect-storage/troubleshooting-guide/index.html
"""

from nodetune.api import BARE_METAL, GPU_ON_PCI, Check, FactsView, OneOf, manual


def observe(facts: FactsView) -> str:
    settings = facts["block.gds"]
    if "nvidia_fs" in facts["modules.loaded"]:
        return "nvidia-fs"
    return "PCI P2PDMA" if settings["p2pdma"] else "compatibility mode"


def cause(facts: FactsView, _subjects: tuple[str, ...]) -> str:
    """Tell where the file forbids the mode that is left."""
    forbidden = facts["block.gds"]["compat_mode"] is False
    return "cufile.json does not allow compatibility mode: cuFile calls fail" if forbidden else ""


CHECK = Check(
    needs=("block.gds", "modules.loaded"),
    observe=observe,
    cause=cause,
    accept=OneOf(["nvidia-fs", "PCI P2PDMA"]),
    applies=(BARE_METAL, GPU_ON_PCI),
    remedy=manual(
        "Name the part gds in the site file of `nodetune provision`, or install nvidia-gds and nvidia-fs, modprobe nvidia-fs, and list "
        "it in /etc/modules-load.d. "
        "On Linux 6.2 and newer with the open driver, use_pci_p2pdma in /etc/cufile.json serves local NVMe without "
        "it."
    ),
    severity="info",
    name="GPUDirect Storage",
)
