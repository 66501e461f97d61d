"""The peers of the links whose MTU an apply changes: other hosts of it with an address in the same subnet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from nodetune.api.derived import lookup
from nodetune.api.facts_view import FactsView
from nodetune.api.model import HostFacts
from nodetune.remediation.plan import HostPlan

Group = Mapping[str, Any]
NEEDS = ("net.addresses", "net.links", "net.subnets")
MOST = 16
"""Peers that a link is proven with, those with the largest MTU first."""


@dataclass
class _End:
    """A link of a host in a subnet."""

    host: str
    link: str
    address: str
    mtu: int


class LinkPeers:
    """Which hosts are proven with which, and the MTU that each has so far."""

    def __init__(self, plans: Iterable[HostPlan]) -> None:
        self._ends: dict[str, list[_End]] = {}
        self._changing: dict[str, set[str]] = {}
        for plan in plans:
            self._changing[plan.host] = {each["link"] for change in plan.changes for each in _of_mtu(change.changes)}
            for subnet, end in _ends(plan.host, plan.result.facts):
                self._ends.setdefault(subnet, []).append(end)

    def canaries(self) -> list[str]:
        """Return a host of each subnet whose links get another MTU: it goes first, and the others are proven with it."""
        changing = [[end.host for end in ends if end.link in self._changing[end.host]] for ends in self._ends.values()]
        return sorted({min(hosts) for hosts in changing if hosts})

    def given(self, host: str, groups: Sequence[Group]) -> list[dict[str, Any]]:
        """Return the groups of a host's changes, those of an MTU with their peers."""
        return [{**group, "changes": [self._with_peers(host, each) for each in group["changes"]]} for group in groups]

    def changed(self, host: str, groups: Iterable[Group], problems: Iterable[Mapping[str, Any]]) -> None:
        """Remember the MTU of each link that was changed."""
        failed = {problem.get("label") for problem in problems}
        for change in (each for group in groups for each in _of_mtu(group["changes"])):
            for end in (end for ends in self._ends.values() for end in ends):
                if (end.host, end.link) == (host, change["link"]) and f"{end.link} mtu" not in failed:
                    end.mtu = int(change["value"])

    def _with_peers(self, host: str, change: Mapping[str, Any]) -> dict[str, Any]:
        if not _of_mtu([change]):
            return dict(change)
        mine = [ends for ends in self._ends.values() if any(_is(end, host, change["link"]) for end in ends)]
        others = sorted((end for ends in mine for end in ends if end.host != host), key=lambda end: -end.mtu)
        return {**change, "peers": {end.address: {"host": end.host, "mtu": end.mtu} for end in others[:MOST]}}


def _is(end: _End, host: str, link: str) -> bool:
    return (end.host, end.link) == (host, link)


def _of_mtu(changes: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [each for each in changes if (each["change"], each.get("setting")) == ("link", "mtu")]


def _ends(host: str, facts: HostFacts | None) -> list[tuple[str, _End]]:
    """Return (subnet, link) of each link of a host with an address in it."""
    if facts is None:
        return []
    seen = FactsView(facts, NEEDS, lookup)
    found = []
    try:
        links, addresses = seen.readable("net.links", {}), seen.readable("net.addresses", {})
        for subnet, names in seen.readable("net.subnets", {}).items():
            inside = [
                name for name in names if name in addresses and IPv4Address(addresses[name]) in IPv4Network(subnet)
            ]
            found += [(subnet, _End(host, name, addresses[name], int(links[name]["mtu"]))) for name in inside]
    except (TypeError, ValueError, LookupError, AttributeError):
        return []  # a host may send any shape of data
    return found
