"""The MTU of a RoCE link is too small for full RDMA packets.

Why it matters: The RDMA MTU is the largest of 256, 512, 1024, 2048 and 4096 bytes that fits the MTU of the network
link. With 1500 it is 1024, so four times the packets for the same data. From 4200 on it is 4096, its maximum; beyond
that, the usual 9000 helps TCP, not RoCE. All hosts and switches of a network must agree.
Confirm manually: ibv_devinfo | grep -E 'hca_id|active_mtu'; grep . /sys/class/net/*/mtu
Side effects of the fix: The link goes down for a moment; every switch port on the path must carry such frames.
Sources: https://git.kernel.org/torvalds/c/bcacb897569f ;
https://www.ibm.com/docs/en/linux-on-systems?topic=functions-set-mtu
"""

from nodetune.api import Absent, AtLeast, Check, FactsView, manual
from nodetune.checks.shared.rdma_ports import ROCE_MTU, for_gpus


def observe(facts: FactsView) -> dict[str, int] | Absent:
    links = facts["net.links"]
    netdevs = sorted({port["netdev"] for port in for_gpus(facts["rdma.ports"], "Ethernet").values() if port["netdev"]})
    return {name: links[name]["mtu"] for name in netdevs if name in links} or Absent(
        "no active RoCE port of 100 Gb/s or more"
    )


CHECK = Check(
    needs=("rdma.ports", "net.links"),
    observe=observe,
    accept=AtLeast(ROCE_MTU),
    remedy=manual(
        "Make sure that the switches carry 9000 bytes. Then set the MTU where the link is configured: netplan or "
        "systemd-networkd MTUBytes=9000, or nmcli con mod NAME 802-3-ethernet.mtu 9000; nmcli con up NAME."
    ),
    severity="medium",
)
