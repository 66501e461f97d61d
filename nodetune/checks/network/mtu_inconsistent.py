"""Links of one kind, or of one subnet, have different MTUs.

Why it matters: Hosts that disagree about the frame size in one network exchange small messages and hang on large
ones. One link of eight that came up with another MTU than its siblings usually lost its configuration.
Confirm by hand: grep . /sys/class/net/*/mtu
Side effects of the fix: The link goes down for a moment; the switch port must carry frames of that size.
Sources: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/networking_troubleshooting.html ;
https://www.rfc-editor.org/rfc/rfc894
"""

from nodetune.checks.network._links import Links, groups, in_use
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.siblings import agreed
from nodetune.view import View


def observe(facts: View) -> dict[str, str]:
    links = in_use(facts["net.links"])
    siblings = [
        {name: link for name, link in links.items() if name in names} for names in facts["net.subnets"].values()
    ]
    problems = dict.fromkeys(links, "")
    for group in siblings:
        mtus = sorted({link["mtu"] for link in group.values()})
        if len(mtus) > 1:
            problems.update(
                {
                    name: f"MTU {link['mtu']}, in a subnet with {' and '.join(map(str, mtus))}"
                    for name, link in group.items()
                }
            )
    for group in groups(links, "driver", "speed_mbps"):
        problems.update(_odd(group))
    return problems


def _odd(group: Links) -> dict[str, str]:
    usual = agreed(link["mtu"] for link in group.values())
    return {
        name: f"MTU {link['mtu']}, its siblings have {usual}"
        for name, link in group.items()
        if usual and link["mtu"] != usual
    }


CHECK = Check(
    needs=("net.links", "net.subnets"),
    observe=observe,
    accept=Empty("the same MTU as the siblings"),
    remedy=manual(
        "Compare with the switch ports and with ip link on a good node, then set it where the link is configured: "
        "netplan or systemd-networkd MTUBytes=, or nmcli con mod NAME 802-3-ethernet.mtu 9000; nmcli con up NAME."
    ),
    severity="medium",
)
