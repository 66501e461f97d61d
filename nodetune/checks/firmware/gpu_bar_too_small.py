"""A GPU's BAR1 is too small.

Why it matters: Data-centre GPUs map all of their memory (BAR1: 128 GiB on an H100, 256 GiB on an H200). If the firmware
assigns no addresses above 4 GiB, the window shrinks to 256 MiB or nothing. GPUDirect RDMA and Storage can then map only
a small part at a time, or fall back to copies through host memory. The driver may refuse the GPU.
Healthy exception: A T4 and GeForce cards show 256 MiB by design, and so do the GPUs of laptops.
Confirm manually: lspci -vv -s BDF | grep Region; nvidia-smi -q -d MEMORY | grep -A1 BAR1
Side effects of the fix: The change needs a reboot into the firmware setup. Very old devices may not get addresses.
Sources: https://rocm.docs.amd.com/en/latest/how-to/system-optimization/mi300x.html (above 4G decoding) ;
https://docs.nvidia.com/cuda/gpudirect-rdma/index.html
"""

from nodetune.api import GPU_ON_PCI, AtLeast, Check, Equals, FactsView, When, manual
from nodetune.checks.shared.gpu_cards import FOR_DESKS

WITHOUT_DISPLAY = "0302"
SMALL_BY_DESIGN = ("1eb8", "1bb3", "13f2", "13bd")
"""T4, P4, M60 and M10 offer only 256 MiB by default."""


def observe(facts: FactsView) -> dict[str, int]:
    devices, desks = facts["pci.devices"], _for_desks(facts)
    return {
        bdf: size
        for bdf, size in facts["pci.gpu_bar_mib"].items()
        if bdf in devices
        and devices[bdf]["class"] == WITHOUT_DISPLAY
        and devices[bdf]["device"] not in SMALL_BY_DESIGN
        and bdf not in desks
        and not devices[bdf].get("virtual_function")
    }


def _for_desks(facts: FactsView) -> set[str]:
    """Return the addresses of GeForce and RTX chips: in a laptop they have no display output either."""
    places = facts.readable("gpu.bdf", {})
    return {places.get(gpu, "") for gpu, name in facts.readable("gpu.names", {}).items() if FOR_DESKS.search(name)}


CHECK = Check(
    needs=("pci.devices", "pci.gpu_bar_mib", "gpu.bdf", "gpu.names"),
    observe=observe,
    accept=AtLeast(1024),
    unit="MiB",
    applies=(GPU_ON_PCI, When("host.arch", Equals("x86_64"), "this CPU reaches GPU memory another way")),
    remedy=manual(
        "In the firmware setup (or with the vendor's Redfish tool) enable Above 4G Decoding (also called 64-bit MMIO or large "
        "MMIO) and resizable BAR, and make the MMIO window large enough. For a virtual machine, request a larger MMIO window. "
        "Then reboot."
    ),
    severity="high",
    cost="setting",
)
