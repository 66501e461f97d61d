"""The PCIe link of a GPU has too few lanes.

Why it matters: Copies to and from the host, NICs and storage lose bandwidth in proportion. SXM boards must have all
lanes. Other cards are compared with their peers, because servers wire some slots with fewer lanes. No card counts that
has all the lanes of its slot.
Healthy exception: A card in a slot with four lanes uses all of them.
Confirm manually: nvidia-smi --query-gpu=index,pcie.link.width.current,pcie.link.width.max --format=csv
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvidia-smi/index.html ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from typing import Any

from nodetune import data
from nodetune.api import BARE_METAL, GPU, Check, Empty, FactsView, manual
from nodetune.checks.shared.gpu_peers import MODELS, highest, models


def observe(facts: FactsView) -> dict[str, str]:
    widths, most, model_of = facts["gpu.curr_pcie_link_width"], facts["gpu.max_pcie_link_width"], models(facts)
    found, peers, slots, seen = {}, highest(widths, model_of), _slots(facts), _of_kernel(facts)
    for name, of_nvml in widths.items():
        width = min(of_nvml, seen.get(name, of_nvml))
        model = data.gpu(model_of.get(name, ""))
        if model.get("c2c"):
            continue
        wanted = max(peers[name], most.get(name, 0) if model.get("nvlinks") else 0)
        reduced = f"x{width} of x{wanted}" if width < min(wanted, slots.get(name, wanted)) else ""
        differ = f" (NVML: x{of_nvml}, the kernel: x{seen[name]})" if seen.get(name, of_nvml) != of_nvml else ""
        found[name] = reduced + differ if reduced else ""
    return found


def _of_kernel(facts: FactsView) -> dict[str, int]:
    """Return the lanes of each GPU's link according to the kernel (sysfs), which may differ from NVML."""
    devices, addresses = facts.readable("pci.devices", {}), facts.readable("gpu.bdf", {})
    found = {name: devices.get(bdf, {}).get("link_width") for name, bdf in addresses.items()}
    return {name: width for name, width in found.items() if width}


def _slots(facts: FactsView) -> dict[str, int]:
    """Return the lanes of the slot of each GPU, if the port above reports them."""
    devices, addresses = facts.readable("pci.devices", {}), facts.readable("gpu.bdf", {})
    ports = {name: _port(devices.get(bdf, {}), devices) for name, bdf in addresses.items()}
    return {name: port["max_link_width"] for name, port in ports.items() if port.get("max_link_width")}


def _port(device: dict[str, Any], devices: dict[str, Any]) -> dict[str, Any]:
    port: dict[str, Any] = devices.get(device["parents"][-1], {}) if device.get("parents") else {}
    return port


CHECK = Check(
    needs=("gpu.curr_pcie_link_width", "gpu.max_pcie_link_width", *MODELS, "gpu.bdf", "pci.devices"),
    observe=observe,
    accept=Empty("all lanes"),
    applies=(GPU, BARE_METAL),
    remedy=manual(
        "Power the host off, reseat the GPU or its riser and clean the contacts. If a slot stays narrow that has more lanes "
        "according to the board's manual, it is broken."
    ),
    severity="high",
    cost="bandwidth",
)
