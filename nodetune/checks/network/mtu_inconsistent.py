"""The MTU of a network link differs from its peers.

Why it matters: Hosts with different frame sizes on one network exchange small messages and hang on large ones. If one
link of eight has another MTU than its peers, it usually lost its configuration; several links with another one have
another role. Peers are links of one kind or of one subnet. roce-mtu-small reports links of RoCE whose MTU is too small.
Confirm manually: grep . /sys/class/net/*/mtu
Side effects of the fix: The link goes down for a moment; the switch port must carry frames of that size.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/networking_troubleshooting.html ;
https://www.rfc-editor.org/rfc/rfc894
"""

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.checks.network._links import Links, groups, in_use
from nodetune.checks.rdma._ports import ROCE_MTU, for_gpus
from nodetune.foundation.stats import agreed

MOST_NAMED = 8
"""MTUs of one subnet."""


def observe(facts: FactsView) -> dict[str, str]:
    links = in_use(facts["net.links"])
    roce = {port["netdev"] for port in for_gpus(facts.readable("rdma.ports", {}), "Ethernet").values()}
    small_roce = {name for name, link in links.items() if name in roce and link["mtu"] < ROCE_MTU}
    subnets = [{name: links[name] for name in names if name in links} for names in facts["net.subnets"].values()]
    problems = dict.fromkeys(links, "")
    for group in subnets:
        mtus = sorted({link["mtu"] for link in group.values()})
        if len(mtus) > 1:
            seen = " and ".join(map(str, mtus[:MOST_NAMED]))
            problems.update({name: f"MTU {link['mtu']}, its subnet has {seen}" for name, link in group.items()})
    for group in groups(links, "driver", "speed_mbps", "master"):
        problems.update(_odd(group))
    return {name: problem for name, problem in problems.items() if name not in small_roce}


def _odd(group: Links) -> dict[str, str]:
    """Return the one link that differs. Two have another role, such as storage next to the network of the GPUs."""
    usual = agreed(link["mtu"] for link in group.values())
    odd = {name: link["mtu"] for name, link in group.items() if usual and link["mtu"] != usual}
    return {name: f"MTU {mtu}, its peers have {usual}" for name, mtu in odd.items() if len(odd) == 1}


CHECK = Check(
    needs=("net.links", "net.subnets", "rdma.ports"),
    observe=observe,
    accept=Empty("the MTU of its peers"),
    remedy=manual(
        "Compare with the switch ports and with ip link on a good node. Then set the MTU where the link is "
        "configured: netplan or systemd-networkd MTUBytes=, or nmcli con mod NAME 802-3-ethernet.mtu 9000; nmcli con "
        "up NAME."
    ),
    severity="medium",
)
