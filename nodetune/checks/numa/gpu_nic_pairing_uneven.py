"""A GPU has no RDMA card under its PCIe switch, but others have.

Why it matters: In a machine with one card per GPU (or pair), a GPU without a card means that a card failed, fell off
the bus or is in another slot. The GPU's traffic then crosses the processor. GPUDirect RDMA needs a shared switch at
NCCL's default settings.
Confirm manually: nvidia-smi topo -m
Side effects of the fix: Cards must be moved or replaced, so the node is out of service.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-net-gdr-level ;
https://github.com/NVIDIA/nccl (src/graph/paths.cc)
"""

from nodetune.api import BARE_METAL, GPU_ON_PCI, RDMA, Check, Empty, FactsView, manual
from nodetune.checks.numa import _pairing


def observe(facts: FactsView) -> dict[str, object]:
    """Return each GPU without a card under its switch, if other GPUs have one."""
    locations = _pairing.nearest(facts)
    count = list(locations.values()).count(_pairing.SWITCH)
    text = f"none under its switch; {count} of {len(locations)} GPUs have one"
    excluded = (_pairing.SWITCH, _pairing.FAR)  # gpu-without-near-nic reports a card on another NUMA node
    return {gpu: text if count and place not in excluded else [] for gpu, place in locations.items()}


CHECK = Check(
    observe=observe,
    needs=_pairing.NEEDS,
    applies=(GPU_ON_PCI, RDMA, BARE_METAL),
    accept=Empty("an RDMA card under every GPU's switch, or under none"),
    remedy=manual(
        "Compare the cards (lspci -d 15b3:) with the bill of materials, and the slots (nvidia-smi topo -m) with a "
        "node of the same model. Reseat or replace missing cards. If the machine is built this way, waive this for its hosts."
    ),
    severity="medium",
    name="RDMA cards",
)
