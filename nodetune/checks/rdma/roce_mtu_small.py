"""The MTU of a RoCE link is too small for full RDMA packets.

Why it matters: The RDMA MTU is the largest of 256, 512, 1024, 2048 and 4096 bytes that fits the MTU of the network
link. With 1500 it is 1024, so four times the packets for the same data. From 4200 on it is 4096, its maximum; beyond
that, the usual 9000 helps TCP, not RoCE. All hosts and switches of a network must agree. A front end that can do RoCE too
is not judged: the link of the default route, or the only one in its subnet while others share one.
Confirm manually: ibv_devinfo | grep -E 'hca_id|active_mtu'; grep . /sys/class/net/*/mtu
Side effects of the fix: The link goes down for a moment; every switch port on the path must carry such frames. It is advice until
a site sets `set: 9000`, as for ethernet-mtu-small.
Sources: https://git.kernel.org/torvalds/c/bcacb897569f ;
https://www.ibm.com/docs/en/linux-on-systems?topic=functions-set-mtu
"""

from __future__ import annotations

from nodetune.api import Absent, AtLeast, Check, FactsView, net_link
from nodetune.checks.shared.network_links import DATA_LINKS, front_ends
from nodetune.checks.shared.rdma_ports import ROCE_MTU, for_gpus


def observe(facts: FactsView) -> dict[str, int] | Absent:
    links = facts["net.links"]
    roce = {port["netdev"] for port in for_gpus(facts["rdma.ports"], "Ethernet").values()} & links.keys()
    carry_data = roce - front_ends(facts) or roce
    return {name: links[name]["mtu"] for name in sorted(carry_data)} or Absent(
        "no active RoCE port of 100 Gb/s or more"
    )


CHECK = Check(
    needs=("rdma.ports", *DATA_LINKS),
    observe=observe,
    accept=AtLeast(ROCE_MTU),
    remedy=net_link(
        "mtu",
        steps="Make sure that the switches carry 9000 bytes. Then set the MTU where the link is configured: netplan or "
        "systemd-networkd MTUBytes=9000, or nmcli con mod NAME 802-3-ethernet.mtu 9000; nmcli con up NAME.",
    ),
    severity="medium",
    name="MTU",
)
