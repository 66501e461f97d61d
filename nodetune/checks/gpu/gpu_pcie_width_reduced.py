"""The PCIe link of a GPU has too few lanes.

Why it matters: Copies to and from the host, NICs and storage lose bandwidth in proportion. SXM boards must have all
lanes. Other cards are compared with their peers, because servers wire some slots with fewer lanes.
Confirm manually: nvidia-smi --query-gpu=index,pcie.link.width.current,pcie.link.width.max --format=csv
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvidia-smi/index.html ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune import data
from nodetune.api import BARE_METAL, GPU, Check, Empty, FactsView, manual
from nodetune.checks.gpu._siblings import highest


def observe(facts: FactsView) -> dict[str, str]:
    widths, most, models = (
        facts["gpu.curr_pcie_link_width"],
        facts["gpu.max_pcie_link_width"],
        facts["gpu.pci_device_id"],
    )
    found, peers = {}, highest(widths, models)
    for name, width in widths.items():
        model = data.gpu(models.get(name, ""))
        if model.get("c2c"):
            continue
        wanted = max(peers[name], most.get(name, 0) if model.get("nvlinks") else 0)
        found[name] = f"x{width} of x{wanted}" if width < wanted else ""
    return found


CHECK = Check(
    needs=("gpu.curr_pcie_link_width", "gpu.max_pcie_link_width", "gpu.pci_device_id"),
    observe=observe,
    accept=Empty("all lanes"),
    applies=(GPU, BARE_METAL),
    remedy=manual(
        "Power the host off, reseat the GPU or its riser and clean the contacts. If a slot stays narrow, it is broken."
    ),
    severity="high",
)
