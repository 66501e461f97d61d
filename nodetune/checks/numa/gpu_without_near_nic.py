"""A GPU has no RDMA card on its NUMA node.

Why it matters: NCCL sends a GPU's traffic through a card under the same PCIe switch, or otherwise on the same NUMA
node. If the nearest card is attached to another processor, every byte crosses the link between the sockets, and
GPUDirect RDMA stays off at NCCL's default distances. The slowest GPU sets the pace of the job. Parts of one processor
(NPS4, SNC) count as one node.
Healthy exception: A card on another part of the same processor (NPS4, SNC) is near. Ethernet cards below 100 Gb/s are front
ends, and no card for GPUs.
Confirm manually: nvidia-smi topo -m
Side effects of the fix: Cards must be moved between slots, so the node is out of service.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-net-gdr-level ;
https://github.com/NVIDIA/nccl (src/graph/paths.cc)
"""

from __future__ import annotations

from nodetune.api import BARE_METAL, GPU_ON_PCI, RDMA, Check, FactsView, OneOf, Unread, Value, manual
from nodetune.checks.numa import _pairing


def observe(facts: FactsView) -> dict[str, Value | Unread]:
    """Return the location of each GPU's nearest card."""
    locations = _pairing.nearest(facts).items()
    return {gpu: Unread(place) if place == _pairing.UNKNOWN else Value(place) for gpu, place in locations}


CHECK = Check(
    observe=observe,
    needs=_pairing.NEEDS,
    applies=(GPU_ON_PCI, RDMA, BARE_METAL),
    accept=OneOf([_pairing.SWITCH, _pairing.NODE]),
    remedy=manual(
        "Compare nvidia-smi topo -m with the slot plan in the vendor's manual. A card that is missing from lspci has "
        "failed. Move a card in the wrong slot to a slot of the GPU's processor."
    ),
    severity="high",
    name="nearest RDMA card",
)
