"""An Ethernet link of 10 Gb/s or more that carries data uses frames of 1500 bytes.

Why it matters: At 100 Gb/s, frames of 1500 bytes are eight million packets a second, at 10 Gb/s close to a million. The
CPU handles six times the packets and interrupts that it would with 9000 bytes, and storage over TCP and NCCL's socket
transport slow down. A front end is not judged, because routers and the Internet expect 1500: the link of the default route,
or the only one in its subnet while others share one. roce-mtu-small judges RoCE.
Confirm manually: grep . /sys/class/net/*/mtu
Side effects of the fix: The link goes down for a moment; all hosts and switch ports of the network must agree. So it is advice
until a site sets `set: 9000`. Then one host of each subnet goes first, and a host that loses a peer that answered before, or
whose large frames do not reach one that has that MTU, sets it back at once. The first one proves only that nobody is lost: if the
next ones fail, roll the run back. A link with the default route, or in a bond, is left alone.
Sources: https://fasterdata.es.net/network-tuning/mtu-issues/ ;
https://learn.microsoft.com/en-us/azure/virtual-network/how-to-virtual-machine-mtu
"""

from nodetune.api import BARE_METAL, AtLeast, Check, FactsView, net_link
from nodetune.checks.shared.network_links import DATA_LINKS, data_links, fast
from nodetune.checks.shared.rdma_ports import for_gpus

LARGER_THAN_USUAL = 1501


def observe(facts: FactsView) -> dict[str, int]:
    roce = {port["netdev"] for port in for_gpus(facts.get("rdma.ports", {}), "Ethernet").values()}
    links = fast(data_links(facts))
    return {name: link["mtu"] for name, link in links.items() if name not in roce}


CHECK = Check(
    needs=(*DATA_LINKS, "rdma.ports"),
    observe=observe,
    accept=AtLeast(LARGER_THAN_USUAL),
    applies=(BARE_METAL,),
    remedy=net_link(
        "mtu",
        steps="Have apply do it once the switches carry 9000 bytes: the site file sets `checks: {ethernet-mtu-small: {set: 9000}}`. "
        "Manually: raise the switches first. On every host of the subnet, set a way back (systemd-run --on-active=300 ip link set LINK mtu "
        "1500), then ip link set LINK mtu 9000. From each host to each other: ping -M do -s 8972 HOST. If all answer, stop the "
        "timers and set the MTU where the link is configured: netplan or systemd-networkd MTUBytes=9000, or nmcli con mod NAME "
        "802-3-ethernet.mtu 9000. If one does not, wait for the timers.",
    ),
    severity="low",
    name="MTU",
)
