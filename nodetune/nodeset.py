"""Host names folded and unfolded: gpu001, gpu002 … ↔ gpu[001-128]. The only user of ClusterShell."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache

from ClusterShell.NodeSet import NodeSet, NodeSetException


def fold(hosts: Iterable[str]) -> str:
    """Host names as one node set, in natural order. Names that are no node set stand as they are."""
    return _fold(tuple(hosts))


@lru_cache(maxsize=256)  # the same hosts fail many checks
def _fold(hosts: tuple[str, ...]) -> str:
    plain: list[str] = []
    odd: list[str] = []
    for host in hosts:
        (odd if set(host) & set("[]{}!&^,@:* \t%/") or not host else plain).append(host)
    folded = _folded(plain)
    return ",".join(([folded] if folded else []) + sorted(odd))


def _folded(names: list[str]) -> str:
    try:
        return str(NodeSet.fromlist(names, resolver=None))
    except (NodeSetException, ValueError, OverflowError):
        return ",".join(sorted(names))


@cache
def expand(text: str) -> frozenset[str]:
    """The hosts that a node set names; the text itself, split at commas, when it is none (or names too many)."""
    if re.search(r"\d{6}", text):
        return frozenset(part.strip() for part in text.split(","))
    try:
        return frozenset(NodeSet(text, resolver=None))
    except (NodeSetException, ValueError):
        return frozenset(part.strip() for part in text.split(","))
