"""A GPU has no RDMA card near it.

Why it matters: NCCL moves a GPU's traffic through a card under the same PCIe switch, or else the same NUMA node. Where
the nearest card hangs from another processor, every byte crosses the link between the sockets, and GPUDirect RDMA stays
off at NCCL's default distances. The slowest GPU sets the pace of the job.
Confirm by hand: nvidia-smi topo -m
Side effects of the fix: Cards are moved between slots, so the node is out of service.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-net-gdr-level ;
https://github.com/NVIDIA/nccl (src/graph/paths.cc)
"""

from nodetune.checks.numa import _pairing
from nodetune.conditions import BARE_METAL, GPU_ON_PCI, RDMA
from nodetune.expect import OneOf
from nodetune.model import Check, Unread, Value
from nodetune.remedies import manual
from nodetune.view import View


def observe(facts: View) -> dict[str, Value | Unread]:
    """Where the nearest card of each GPU is."""
    places = _pairing.nearest(facts).items()
    return {gpu: Unread(place) if place == _pairing.NOT_KNOWN else Value(place) for gpu, place in places}


CHECK = Check(
    observe=observe,
    needs=_pairing.NEEDS,
    applies=(GPU_ON_PCI, RDMA, BARE_METAL),
    accept=OneOf([_pairing.SWITCH, _pairing.NODE]),
    remedy=manual(
        "Compare nvidia-smi topo -m with the slot plan in the vendor's manual. A card that is missing from lspci has "
        "failed; one in the wrong slot is moved to a slot of the GPU's processor."
    ),
    severity="high",
)
