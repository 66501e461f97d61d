"""The kind of each leaf of a fact: the catalogue of facts says which. Pure."""

import re
from collections.abc import Iterable
from functools import cache
from itertools import groupby
from typing import NamedTuple

from nodetune.facts import catalogue

NUMBERS = ("errors", "counter", "heat", "gauge")
COUNTERS = ("errors", "counter")
JUDGED = ("errors", "heat")
PASSING = "passing"
KEPT_ON_CHANGE = ("identity", "setting")

FIGURES = ("verify.", "watch.", "tune.")
"""The beginnings of the leaves of figures."""


class _Kind(NamedTuple):
    name: str
    reset: str = ""
    limit: int | None = None


_FIGURE = _Kind("gauge")
_UNKNOWN = _Kind("setting")
"""The kind of what a newer probe sends: the catalogue has all that this one does."""


def of(leaf: str) -> str:
    """Return the kind of a leaf, such as `gpu.nvlink_errors/GPU3/recovery/7`."""
    return _of(leaf).name


def outlives_a_boot(leaf: str) -> bool:
    """Tell whether a counter is kept in the part itself."""
    return _of(leaf).reset == "lifetime"


def limit(leaf: str) -> int | None:
    """Return what a judged figure must not reach, for naming the day on which it will."""
    return _of(leaf).limit


@cache
def _of(leaf: str) -> _Kind:
    fact = leaf.partition("/")[0]
    known = catalogue.listed(fact)
    if not known:
        return _FIGURE if leaf.startswith(FIGURES) else _UNKNOWN
    kinds, others = _kinds(known)
    below = leaf[len(fact) :]
    return next((kind for kind, pattern in kinds if pattern.match(below)), others)


@cache
def _kinds(name: str) -> tuple[tuple[tuple[_Kind, re.Pattern[str]], ...], _Kind]:
    """Return the kinds of leaves below a fact of the catalogue and what finds them, in their order, and that of all others."""
    fact, *rows = catalogue.rows(name)
    others = _kind(fact) if fact.kind else _UNKNOWN
    kinds = groupby((row for row in rows if row.kind and _kind(row) != others), _kind)
    return tuple([(kind, _pattern(each)) for kind, each in kinds]), others


def _kind(row: catalogue.Row) -> _Kind:
    return _Kind(row.kind, row.cell(catalogue.RESET), row.limit)


def _pattern(rows: Iterable[catalogue.Row]) -> re.Pattern[str]:
    """Return what finds the leaves of these rows, and all below them."""
    return re.compile("|".join(_expression(row.path) for row in rows), re.DOTALL)


def _expression(path: str) -> str:
    return f"/{'.*'.join(map(re.escape, path.split('*')))}(?:/|\\Z)"
