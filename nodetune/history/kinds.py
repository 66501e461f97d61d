"""The kind of each leaf of a fact: kinds.txt says which. Pure."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

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
def _rules_about(beginning: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the rules that may be about leaves that begin so: a family of facts, or a fact. Few are."""
    family = beginning.partition(".")[0]
    rules = _rules() if family == beginning else _rules_about(family)
    some = ((kind, tuple([glob for glob in globs if _may_match(glob, beginning)])) for kind, globs in rules)
    return tuple([(kind, globs) for kind, globs in some if globs and kind != _LIFETIME])


@cache
def _patterns(fact: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple([(kind, _pattern(globs)) for kind, globs in _rules_about(fact)])


def _may_match(glob: str, beginning: str) -> bool:
    literal = glob.partition("*")[0]
    return literal.startswith(beginning) or beginning.startswith(literal)


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
    for kind, pattern in _patterns(leaf.partition("/")[0]):
        if pattern.search(leaf):
            return kind
    return "setting"


def outlives_a_boot(leaf: str) -> bool:
    """Tell whether a counter is kept in the part itself."""
    return any(_pattern(globs).search(leaf) for kind, globs in _rules() if kind == _LIFETIME)
