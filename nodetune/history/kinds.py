"""The kind of each leaf of a fact: kinds.txt says which. Pure."""

from __future__ import annotations

import fnmatch
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
def _rules() -> tuple[list[tuple[str, re.Pattern[str]]], re.Pattern[str]]:
    """Return (kind, pattern) in their order, and the pattern of counters that outlive a boot."""
    lines = (Path(__file__).parent / "kinds.txt").read_text().splitlines()
    rules = [(kind, _pattern(globs)) for kind, *globs in (line.split() for line in lines if line[:1].isalpha())]
    return [rule for rule in rules if rule[0] != _LIFETIME], next(each for kind, each in rules if kind == _LIFETIME)


def _pattern(globs: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(fnmatch.translate(glob + end) for glob in globs for end in ("", "/*")))


@cache
def of(leaf: str) -> str:
    """Return the kind of a leaf, such as `gpu.nvlink_errors/GPU3/recovery/7`."""
    return next((kind for kind, pattern in _rules()[0] if pattern.match(leaf)), "setting")


def outlives_a_boot(leaf: str) -> bool:
    """Tell whether a counter is kept in the part itself."""
    return bool(_rules()[1].match(leaf))
