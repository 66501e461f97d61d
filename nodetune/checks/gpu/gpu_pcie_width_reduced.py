"""A GPU's PCIe link has fewer lanes than it should.

Why it matters: Copies to and from the host, to NICs and to storage lose bandwidth in proportion. Boards of the SXM
kind must have all lanes; other cards are held against their siblings, since servers wire some slots with fewer.
Confirm by hand: nvidia-smi --query-gpu=index,pcie.link.width.current,pcie.link.width.max --format=csv
Side effects of the fix: None: it only reports.
Sources: https://docs.nvidia.com/deploy/nvidia-smi/index.html ;
https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
"""

from nodetune import data
from nodetune.checks.gpu._siblings import highest
from nodetune.conditions import BARE_METAL, GPU
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> dict[str, str]:
    widths, most, models = (
        facts["gpu.curr_pcie_link_width"],
        facts["gpu.max_pcie_link_width"],
        facts["gpu.pci_device_id"],
    )
    found, siblings = {}, highest(widths, models)
    for name, width in widths.items():
        model = data.gpu(models.get(name, ""))
        if model.get("c2c"):
            continue
        wanted = max(siblings[name], most.get(name, 0) if model.get("nvlinks") else 0)
        found[name] = f"x{width} of x{wanted}" if width < wanted else ""
    return found


CHECK = Check(
    needs=("gpu.curr_pcie_link_width", "gpu.max_pcie_link_width", "gpu.pci_device_id"),
    observe=observe,
    accept=Empty("all lanes"),
    applies=(GPU, BARE_METAL),
    remedy=manual(
        "Power the host off, reseat the GPU or its riser and clean the contacts; a slot that stays narrow is broken."
    ),
    severity="high",
)
