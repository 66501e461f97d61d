"""The values that the history gives to other rooms."""

from dataclasses import dataclass
from typing import Any

DAY = 86_400


@dataclass(frozen=True)
class Point:
    """A day of the past (its lowest and highest value, and its growth), or one look, whose growth is None."""

    at: int
    low: int
    high: int
    grown: int | None = None


@dataclass(frozen=True)
class LeafChange:
    """A leaf that changed between the last look and the one at `at`, or a reset of counters."""

    at: int
    leaf: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Rate:
    """The growth of a counter in a day."""

    host: str
    leaf: str
    a_day: float


@dataclass(frozen=True)
class Spell:
    """From when to when a finding was there; `gone` is None while it is."""

    finding: str
    subject: str
    since: int
    gone: int | None


@dataclass(frozen=True)
class Drain:
    """How often a finding came: `times`, the mean seconds from one beginning to the next (None: came once), and the last."""

    finding: str
    times: int
    between: float | None
    last: Spell
