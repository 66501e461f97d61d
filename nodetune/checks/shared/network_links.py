"""Select and compare network links."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nodetune.api import Absent, FactsView, Observe

Links = dict[str, dict[str, Any]]

FAST_MBPS = 10_000
"""Slower links are for management."""


def in_use(links: Links) -> Links:
    """Return the physical Ethernet links that are up, without virtual functions."""
    return {
        name: link
        for name, link in links.items()
        if link["physical"] and link["up"] and link["type"] == "ethernet" and not link.get("virtual_function")
    }


def fast(links: Links, mbps: int = FAST_MBPS) -> Links:
    """Return the links in use of at least the given speed."""
    return {name: link for name, link in in_use(links).items() if (link["speed_mbps"] or 0) >= mbps}


DATA_LINKS = ("net.links", "net.subnets", "net.default_interface")
"""The facts that decide which links carry data."""


def data_links(facts: FactsView) -> Links:
    """Return the links in use that carry data: fast or of unknown speed, and no front end. Only those have one MTU."""
    front = front_ends(facts)
    return {
        name: link
        for name, link in in_use(facts["net.links"]).items()
        if name not in front and (link["speed_mbps"] or FAST_MBPS) >= FAST_MBPS
    }


def front_ends(facts: FactsView) -> set[str]:
    """Return the links that lead out, where routers and the Internet expect 1500 bytes.

    These are the link of the default route with its parts, and a link that is the only one in its subnet, while others of its
    kind share one.
    """
    links = facts["net.links"]
    routed = facts.get("net.default_interface", "")
    found = {routed, routed.partition(".")[0]} - {""}
    while parts := {name for name, link in links.items() if link["master"] in found} - found:
        found |= parts
    for kind in groups(in_use(links), "driver", "speed_mbps"):
        networks = [(kind.keys() - found) & set(names) for names in facts["net.subnets"].values()]
        shared = {name for names in networks if len(names) > 1 for name in names}
        single = {name for names in networks for name in names} - shared
        if shared and len(single) == 1:
            found |= single
    return found


def groups(links: Links, *keys: str) -> Iterable[Links]:
    """Group the links by the given entries."""
    found: dict[tuple[Any, ...], Links] = {}
    for name, link in links.items():
        found.setdefault(tuple(link.get(key) for key in keys), {})[name] = link
    return found.values()


def share(part: float, whole: float) -> str:
    """Format a part of a whole: "12 of 3,000,000"."""
    return f"{part:,.0f} of {whole:,.0f}"


DROPS_LEAST, DROPS_LIMIT = 1000, 1e-5
"""Fewer packets lost since boot, or a smaller share of all, need no larger queue."""


def lost_share(counter: str, least: int, limit: float, words: str) -> Observe:
    """Observe links whose `counter` is at least `least` and above `limit` of all frames that arrived."""

    def text(counted: dict[str, int]) -> str:
        lost = counted.get(counter, 0)
        arrived = counted.get("rx_packets", 0) + lost
        return "" if lost < least or lost <= limit * arrived else f"{share(lost, arrived)} {words}"

    def observe(facts: FactsView) -> dict[str, str]:
        counted = facts["net.statistics"]
        return {name: text(counted[name]) for name in in_use(facts["net.links"]) if name in counted}

    return observe


def conf_of_shared_subnets(facts: FactsView, setting: str) -> dict[str, int] | Absent:
    """Return the effective setting of physical links that share a subnet: the larger of conf/all and conf/LINK."""
    physical = {name for name, link in facts["net.links"].items() if link["physical"]}
    shared = [physical & set(links) for links in facts["net.subnets"].values()]
    names = sorted(set().union(*(links for links in shared if len(links) > 1), set()))
    conf = facts["net.ipv4_conf"]
    effective = {name: max(conf["all"][setting], conf[name][setting]) for name in names if name in conf}
    return effective or Absent("no two physical links share a subnet")
