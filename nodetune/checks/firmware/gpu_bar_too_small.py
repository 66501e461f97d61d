"""A data-centre GPU shows only a small window of its memory on the PCI bus.

Why it matters: These GPUs map all of their memory (BAR1: 128 GiB on an H100, 256 GiB on an H200). Where the firmware does
not give addresses above 4 GiB, 256 MiB or nothing is left: GPUDirect RDMA and Storage can then map only a sliver at a time
or fall back to copies through host memory, and the driver may refuse the GPU.
Confirm by hand: lspci -vv -s BDF | grep Region; nvidia-smi -q -d MEMORY | grep -A1 BAR1
Side effects of the fix: Needs a reboot into the firmware set-up; very old devices may not get addresses.
Sources: https://rocm.docs.amd.com/en/latest/how-to/system-optimization/mi300x.html (above 4G decoding) ;
https://docs.nvidia.com/cuda/gpudirect-rdma/index.html
"""

from nodetune.conditions import GPU_ON_PCI
from nodetune.expect import AtLeast, Equals
from nodetune.model import Check, When
from nodetune.remedies import manual
from nodetune.view import View

WITHOUT_DISPLAY = "0302"
SMALL_BY_DESIGN = ("1eb8", "1bb3", "13f2", "13bd")
"""T4, P4, M60, M10: 256 MiB is all that they offer by default."""


def observe(facts: View) -> dict[str, int]:
    devices = facts["pci.devices"]
    return {
        bdf: size
        for bdf, size in facts["pci.gpu_bar_mib"].items()
        if devices[bdf]["class"] == WITHOUT_DISPLAY and devices[bdf]["device"] not in SMALL_BY_DESIGN
    }


CHECK = Check(
    needs=("pci.devices", "pci.gpu_bar_mib"),
    observe=observe,
    accept=AtLeast(1024),
    unit="MiB",
    applies=(GPU_ON_PCI, When("host.arch", Equals("x86_64"), "GPU memory is reached by another way on this CPU")),
    remedy=manual(
        "In the firmware set-up (or by the vendor's Redfish tool) enable Above 4G Decoding (also called 64-bit MMIO or large "
        "MMIO) and resizable BAR, and give MMIO enough room; in a virtual machine ask for a larger MMIO window. Then reboot."
    ),
    severity="high",
)
