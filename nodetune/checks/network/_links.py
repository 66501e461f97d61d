"""Selections of network links that several checks share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nodetune.model import Absent, Observe
from nodetune.view import View

Links = dict[str, dict[str, Any]]

FAST_MBPS = 10_000
"""From here up a link carries data; slower ones are for management."""


def in_use(links: Links) -> Links:
    """Physical Ethernet links that are up, without virtual functions."""
    return {
        name: link
        for name, link in links.items()
        if link["physical"] and link["up"] and link["type"] == "ethernet" and not link.get("virtual_function")
    }


def fast(links: Links, mbps: int = FAST_MBPS) -> Links:
    """Those of at least the given speed."""
    return {name: link for name, link in in_use(links).items() if (link["speed_mbps"] or 0) >= mbps}


def groups(links: Links, *keys: str) -> Iterable[Links]:
    """Links that agree in the given entries, group by group."""
    found: dict[tuple[Any, ...], Links] = {}
    for name, link in links.items():
        found.setdefault(tuple(link.get(key) for key in keys), {})[name] = link
    return found.values()


def share(part: float, whole: float) -> str:
    """A part of a whole as people read it: "12 of 3,000,000"."""
    return f"{part:,.0f} of {whole:,.0f}"


def lost_share(counter: str, least: int, limit: float, words: str) -> Observe:
    """An observation: links of which `counter` is at least `least` and above `limit` of all that arrived, in words."""

    def text(counted: dict[str, int]) -> str:
        lost = counted.get(counter, 0)
        arrived = counted.get("rx_packets", 0) + lost
        return "" if lost < least or lost <= limit * arrived else f"{share(lost, arrived)} {words}"

    def observe(facts: View) -> dict[str, str]:
        counted = facts["net.statistics"]
        return {name: text(counted[name]) for name in in_use(facts["net.links"]) if name in counted}

    return observe


def conf_of_shared_subnets(facts: View, setting: str) -> dict[str, int] | Absent:
    """The setting that counts on each physical link that shares a subnet with another: the larger of all's and its own."""
    physical = {name for name, link in facts["net.links"].items() if link["physical"]}
    shared = [physical & set(links) for links in facts["net.subnets"].values()]
    names = sorted(set().union(*(links for links in shared if len(links) > 1), set()))
    conf = facts["net.ipv4_conf"]
    seen = {name: max(conf["all"][setting], conf[name][setting]) for name in names if name in conf}
    return seen or Absent("no two physical links share a subnet")
