"""A GPU has no RDMA card under its PCIe switch although its siblings have one.

Why it matters: In a machine built with one card beside each GPU (or pair), a GPU without is the sign of a card that
failed, fell off the bus or sits in another slot. Its traffic takes the way over the processor, and GPUDirect RDMA needs
a shared switch at NCCL's default settings.
Confirm by hand: nvidia-smi topo -m
Side effects of the fix: Cards are moved or replaced, so the node is out of service.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-net-gdr-level ;
https://github.com/NVIDIA/nccl (src/graph/paths.cc)
"""

from nodetune.checks.numa import _pairing
from nodetune.conditions import BARE_METAL, GPU_ON_PCI, RDMA
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> dict[str, object]:
    """Each GPU that stands apart from those that share a switch with a card."""
    places = _pairing.nearest(facts)
    count = list(places.values()).count(_pairing.SWITCH)
    told = f"none under its switch; {count} of {len(places)} GPUs have one"
    elsewhere = (_pairing.SWITCH, _pairing.FAR)  # one on another NUMA node is reported as such
    return {gpu: told if count and place not in elsewhere else [] for gpu, place in places.items()}


CHECK = Check(
    observe=observe,
    needs=_pairing.NEEDS,
    applies=(GPU_ON_PCI, RDMA, BARE_METAL),
    accept=Empty("an RDMA card under every GPU's switch, or under none"),
    remedy=manual(
        "Count the cards: lspci -d 15b3: against the bill of materials, and the slots: nvidia-smi topo -m against a "
        "sibling node. Reseat or replace what is missing. If the machine is built this way, waive this for its hosts."
    ),
    severity="medium",
)
