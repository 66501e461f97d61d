"""The kind of each leaf of a fact: kinds.txt says which. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from nodetune.foundation import by_key

NUMBERS = ("errors", "counter", "heat", "gauge")
COUNTERS = ("errors", "counter")
JUDGED = ("errors", "heat")
PASSING = "passing"
KEPT_ON_CHANGE = ("identity", "setting")

_LIFETIME = "lifetime"


@cache
def _rules() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return (kind, globs) in their order."""
    lines = (Path(__file__).parent / "kinds.txt").read_text().splitlines()
    return tuple((kind, tuple(globs)) for kind, *globs in (line.split() for line in lines if line[:1].isalpha()))


@cache
def _globs(family: str = "") -> tuple[tuple[int, str, str], ...]:
    """Return (place of the rule, its kind, glob) of a family of facts; without one those that begin with `*`, for all facts."""
    every = ((place, kind, glob) for place, (kind, globs) in enumerate(_rules()) for glob in globs if kind != _LIFETIME)
    return tuple([each for each in every if (_may_match(each[2], family) if family else each[2][0] == "*")])


@cache
def _patterns(fact: str) -> tuple[tuple[str, re.Pattern[str] | None, bool], ...]:
    """Return (kind, what finds its leaves, whether that is the same for all facts) in the order of the rules. None finds all.

    Most facts have no globs of their own, and share one object.
    """
    own = [each for each in _globs(fact.partition(".")[0]) if _may_match(each[2], fact)] if fact else []
    if not own and fact:
        return _patterns("")
    found: list[tuple[str, re.Pattern[str] | None, bool]] = []
    for (_, kind), globs in sorted(by_key(((place, kind), glob) for place, kind, glob in (*_globs(), *own)).items()):
        if any(_is_whole(glob, fact) for glob in globs):
            return *found, (kind, None, False)
        free, rest = (tuple([glob for glob in globs if (glob[0] == "*") is any_]) for any_ in (True, False))
        found += [(kind, _pattern(some), some is free) for some in (free, rest) if some]
    return tuple(found)


def _is_whole(glob: str, fact: str) -> bool:
    """Tell whether all leaves of a fact match a glob, whatever their names are."""
    return glob == fact or (glob[-1] == "*" and glob.count("*") == 1 and fact.startswith(glob[:-1]))


def _may_match(glob: str, beginning: str) -> bool:
    literal = glob.partition("*")[0]
    return literal != "" and (literal.startswith(beginning) or beginning.startswith(literal))


@cache
def _pattern(globs: tuple[str, ...]) -> re.Pattern[str]:
    """Return what finds the leaves that match a glob, and all below them."""
    return re.compile("|".join(map(_expression, globs)), re.DOTALL)


def _expression(glob: str) -> str:
    begin, end = "" if glob[0] == "*" else r"\A", "" if glob[-1] == "*" else r"(?:/|\Z)"
    return begin + ".*".join(map(re.escape, glob.strip("*").split("*"))) + end


@cache
def of(leaf: str) -> str:
    """Return the kind of a leaf, such as `gpu.nvlink_errors/GPU3/recovery/7`."""
    for kind, pattern, _ in _patterns(leaf.partition("/")[0]):
        if pattern is None or pattern.search(leaf):
            return kind
    return "setting"


def of_all(fact: str, leaves: Sequence[str]) -> str:
    """Return the kind that all these leaves of a fact have; empty if they must be asked for one by one."""
    kind = _usual(fact)
    return "" if kind and _free().search("\n".join(leaves)) else kind


@cache
def _usual(fact: str) -> str:
    """Return the kind of the leaves of a fact that no glob for all facts matches; empty if they differ."""
    first = next(((kind, pattern) for kind, pattern, is_free in _patterns(fact) if not is_free), ("setting", None))
    return first[0] if first[1] is None else ""


@cache
def _free() -> re.Pattern[str]:
    """Return what finds a leaf that a glob for all facts matches, in lines of leaves."""
    return re.compile(
        "|".join(_expression(glob).replace(r"\Z", "$") for *_, glob in _globs()), re.DOTALL | re.MULTILINE
    )


def outlives_a_boot(leaf: str) -> bool:
    """Tell whether a counter is kept in the part itself."""
    return any(_pattern(globs).search(leaf) for kind, globs in _rules() if kind == _LIFETIME)
