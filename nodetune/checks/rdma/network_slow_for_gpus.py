"""The network is slow for the NVLink GPUs of this host.

Why it matters: GPUs with NVLink exchange hundreds of GB/s inside the node. A collective across nodes runs at the speed of
the cards: eight GPUs behind one card of 100 Gb/s have 1.5 GB/s each. NVIDIA's own machines have 50 Gb/s for each GPU
(DGX-1) to 400 (DGX H100). Jobs that stay inside one node lose nothing.
Confirm manually: rdma link; grep . /sys/class/infiniband/*/ports/*/rate /sys/class/net/*/speed; nvidia-smi topo -m
Side effects of the fix: None: more or faster cards, or another machine type.
Sources: https://docs.nvidia.com/dgx/dgxh100-user-guide/introduction-to-dgxh100.html ;
https://docs.nvidia.com/certification-programs/nvidia-certified-configuration-guide/index.html
"""

from __future__ import annotations

from nodetune.api import BARE_METAL, GPU, Absent, AtLeast, Check, FactsView, manual
from nodetune.checks.shared.network_links import in_use
from nodetune.checks.shared.rdma_ports import active, own

SLOWEST = 26
"""Gb/s: two cards of 100 Gb/s for eight GPUs are below it."""


def observe(facts: FactsView) -> int | Absent:
    """Return Gb/s per GPU: the ports that are up, and the other Ethernet links."""
    gpus = [name for name, links in facts["gpu.nvlink_state"].items() if links["active"]]
    ports = own(facts.get("rdma.ports", {}))
    if not gpus or not active(ports) or any(port["state"] != "ACTIVE" for port in ports.values()):
        return Absent("no NVLink, no RDMA port, or a port that is down, which another check reports")
    seen = {port["netdev"] for port in ports.values()}
    others = [link["speed_mbps"] or 0 for name, link in in_use(facts["net.links"]).items() if name not in seen]
    return int((sum(port["rate_gbps"] or 0 for port in ports.values()) + sum(others) / 1000) / len(gpus))


CHECK = Check(
    observe=observe,
    needs=("gpu.nvlink_state", "rdma.ports", "net.links"),
    applies=(BARE_METAL, GPU),
    accept=AtLeast(SLOWEST),
    unit="Gb/s per GPU",
    remedy=manual(
        "Compare the cards with the vendor's plan (rdma link; lspci | grep -i -E 'infiniband|ethernet'). Keep jobs inside one "
        "node where they fit (Slurm: --nodes=1), and plan for a card for each GPU in the next machine."
    ),
    severity="info",
)
