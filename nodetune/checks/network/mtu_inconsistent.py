"""The MTU of a network link differs from its peers.

Why it matters: Hosts with different frame sizes on one network exchange small messages and hang on large ones. If one
link of eight has another MTU than its peers, it usually lost its configuration; several links with another one have
another role. Peers are links of one subnet, or data links of one kind: not the link of the default route, nor the only
one in its subnet while others share one. Of two or three RoCE links of one kind, all are reported; so are two links of one
kind with addresses, if the default route is known to use neither. roce-mtu-small reports links of RoCE whose MTU is too
small.
Confirm manually: grep . /sys/class/net/*/mtu
Side effects of the fix: The link goes down for a moment; the switch port must carry frames of that size. Which size is right only
the site knows (`set: 9000`); it is set back at once if a peer that answered before is lost.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/networking_troubleshooting.html ;
https://www.rfc-editor.org/rfc/rfc894
"""

from nodetune.api import Check, Empty, FactsView, net_link
from nodetune.checks.shared.network_links import DATA_LINKS, Links, data_links, groups, in_use
from nodetune.checks.shared.rdma_ports import ROCE_MTU, Ports, for_gpus
from nodetune.checks.shared.rdma_ports import groups as same_ports
from nodetune.foundation.stats import agreed

MAX_NAMED = 8
"""MTUs of one subnet."""

PAIR = 2
MAX_UNLIKE = 3
"""Links of one kind without an odd one."""


def observe(facts: FactsView) -> dict[str, str]:
    links = in_use(facts["net.links"])
    ports = for_gpus(facts.readable("rdma.ports", {}), "Ethernet")
    roce = {port["netdev"] for port in ports.values()}
    small_roce = {name for name, link in links.items() if name in roce and link["mtu"] < ROCE_MTU}
    subnets = [{name: links[name] for name in names if name in links} for names in facts["net.subnets"].values()]
    problems = dict.fromkeys(links, "")
    for group in subnets:
        mtus = sorted({link["mtu"] for link in group.values()})
        if len(mtus) > 1:
            seen = " and ".join(map(str, mtus[:MAX_NAMED]))
            problems.update({name: f"MTU {link['mtu']}, its subnet has {seen}" for name, link in group.items()})
    peers, addressed = data_links(facts), set().union(*subnets)
    for group in groups(peers, "driver", "speed_mbps", "master"):
        problems.update(_odd(group))
        if len(group) == PAIR and group.keys() <= addressed and facts.readable("net.default_interface"):
            problems.update(_unlike(group))
    for group in _fabric(peers, roce - small_roce, ports):
        problems.update(_unlike(group))
    return {name: problem for name, problem in problems.items() if name not in small_roce}


def _odd(group: Links) -> dict[str, str]:
    """Return the one link that differs. Two have another role, such as storage next to the network of the GPUs."""
    usual = agreed(link["mtu"] for link in group.values())
    odd = {name: link["mtu"] for name, link in group.items() if usual and link["mtu"] != usual}
    return {name: f"MTU {mtu}, its peers have {usual}" for name, mtu in odd.items() if len(odd) == 1}


def _fabric(links: Links, names: set[str], ports: Ports) -> list[Links]:
    """Return the network links of RDMA ports that should be alike."""
    mine = names & set(links)
    ours = {name: port for name, port in ports.items() if port["netdev"] in mine}
    alike = same_ports(ours) if len(ours) > 1 else ()
    return [{port["netdev"]: links[port["netdev"]] for port in group.values()} for group in alike]


def _unlike(group: Links) -> dict[str, str]:
    """Return all of two or three links with unlike MTUs: too few to say which one is wrong."""
    mtus = {link["mtu"] for link in group.values()}
    if len(group) > MAX_UNLIKE or len(mtus) < 2:
        return {}
    told = {name: [f"{other} has {link['mtu']}" for other, link in group.items() if other != name] for name in group}
    return {name: f"MTU {group[name]['mtu']}, {' and '.join(others)}" for name, others in told.items()}


CHECK = Check(
    needs=(*DATA_LINKS, "rdma.ports"),
    observe=observe,
    accept=Empty("the MTU of its peers"),
    remedy=net_link(
        "mtu",
        steps="Compare with the switch ports and with ip link on a good node. Then set the MTU where the link is "
        "configured: netplan or systemd-networkd MTUBytes=, or nmcli con mod NAME 802-3-ethernet.mtu 9000; nmcli con "
        "up NAME. Then from each host to each other: ping -M do -s 8972 HOST (the MTU less 28 bytes).",
    ),
    severity="medium",
)
