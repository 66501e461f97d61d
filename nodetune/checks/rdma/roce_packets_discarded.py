"""A network card drops packets of RoCE.

Why it matters: RoCE expects a network that loses nothing: one lost packet makes the sender repeat all that followed. The
kernel's own statistics do not show it, because RoCE passes the kernel by. The port's buffer was full: the host, the PCIe
slot or the card took the data too slowly, and no pause frame (PFC) held the sender back.
Confirm manually: ethtool -S LINK | grep -E 'rx_discards_phy|prio._buf_discard|rx_packets_phy'
Side effects of the fix: Changing PFC or buffers restarts the link.
Sources: https://docs.kernel.org/networking/device_drivers/ethernet/mellanox/mlx5/counters.html (rx_discards_phy) ;
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/networking_troubleshooting.html
"""

from __future__ import annotations

from nodetune.api import RDMA, Absent, Check, Empty, FactsView, manual
from nodetune.checks.shared.network_links import DROPS_LEAST, DROPS_LIMIT, share
from nodetune.checks.shared.rdma_ports import active

LOST, ARRIVED = "rx_discards_phy", "rx_packets_phy"


def observe(facts: FactsView) -> dict[str, str] | Absent:
    counted = facts["net.counters"]
    links = {port["netdev"] for port in active(facts["rdma.ports"], "Ethernet").values()}
    found = {name: counted[name] for name in sorted(links & counted.keys()) if {LOST, ARRIVED} <= counted[name].keys()}
    return {name: _text(each[LOST], each[ARRIVED]) for name, each in found.items()} or Absent("no RoCE port reports it")


def _text(lost: int, arrived: int) -> str:
    return "" if lost < DROPS_LEAST or lost <= DROPS_LIMIT * arrived else f"{share(lost, arrived)} packets dropped"


CHECK = Check(
    needs=("rdma.ports", "net.counters"),
    observe=observe,
    accept=Empty("no more than one packet in 100000"),
    applies=(RDMA,),
    remedy=manual(
        "See whether rx_discards_phy grows under load. Check PFC and ECN end to end (dcb pfc show dev LINK, and the "
        "switch port), the card's PCIe link, and that RoCE traffic has the lossless priority (DSCP)."
    ),
    severity="medium",
)
