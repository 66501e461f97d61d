"""A network link is slower than its peers.

Why it matters: A worn cable or dirty optics make a port settle for a lower speed without an error. A collective runs
at the pace of its slowest link. Peers are links on the same kind of card.
Confirm manually: grep . /sys/class/net/*/speed
Side effects of the fix: Work on the cable or the switch port takes the link down.
Sources: https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-class-net
"""

from typing import Any

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.checks.shared.network_links import Links, groups, in_use


def observe(facts: FactsView) -> dict[str, str]:
    devices: dict[str, Any] = facts.get("pci.devices", {})
    # rdma-rate-below-siblings judges the links of RDMA ports
    rdma = {port["bdf"] for port in facts.get("rdma.ports", {}).values()} - {None}
    links = {
        name: link
        for name, link in in_use(facts["net.links"]).items()
        if link["speed_mbps"] and link["bdf"] not in rdma
    }
    for name, link in links.items():
        links[name] = {**link, "model": devices.get(link["bdf"], {}).get("device")}
    problems = dict.fromkeys(links, "")
    for group in groups(links, "driver", "model"):
        problems.update(_slow(group))
    return problems


def _slow(group: Links) -> dict[str, str]:
    """Find links below the speed of most of three or more; in a bond, those below any other member."""
    speeds = sorted(link["speed_mbps"] for link in group.values())
    usual = speeds[len(speeds) // 2] if len(speeds) >= 3 else 0
    bonds: dict[str, int] = {}
    for link in group.values():
        if link["master"]:
            bonds[link["master"]] = max(link["speed_mbps"], bonds.get(link["master"], 0))
    slow = {}
    for name, link in group.items():
        wanted = max(usual, bonds.get(link["master"], 0))
        if link["speed_mbps"] < wanted:
            slow[name] = f"{link['speed_mbps'] / 1000:g} Gb/s, its peers have {wanted / 1000:g} Gb/s"
    return slow


CHECK = Check(
    needs=("net.links", "pci.devices", "rdma.ports"),
    observe=observe,
    accept=Empty("the speed of its peers"),
    remedy=manual(
        "ethtool LINK (what both ends advertise), ethtool -m LINK (optics). Reseat or replace the cable, and compare "
        "the settings of the switch port. If a link is meant to be slower, waive it."
    ),
    severity="medium",
    part_of="rdma-rate-below-siblings",
)
