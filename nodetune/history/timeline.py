"""The story of one host: what changed, which findings came and went, and the numbers that moved. Pure but for its reads."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from nodetune.foundation import UserError, text
from nodetune.history import kinds, trends
from nodetune.history.history import History
from nodetune.history.points import DAY, Drain, LeafChange, Point
from nodetune.history.trends import Trend

BLOCKS = "▁▂▃▄▅▆▇█"
WIDTH = 24
"""Signs of a sparkline."""

THOUSANDTHS = 1000


@dataclass(frozen=True)
class Series:
    """A leaf that moved. `line` draws it: growth of a counter, else its highest values, in equal parts of the time."""

    leaf: str
    points: tuple[Point, ...]
    line: str

    @property
    def grown(self) -> int:
        """The growth of a counter in all this time."""
        return self.points[-1].high - self.points[0].low


@dataclass(frozen=True)
class Story:
    host: str
    changes: tuple[LeafChange, ...]
    findings: tuple[Drain, ...]
    series: tuple[Series, ...]
    trends: tuple[Trend, ...]

    def data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {
            "host": self.host,
            "changes": [asdict(each) for each in self.changes],
            "findings": [asdict(each) for each in self.findings],
            "series": [{"leaf": each.leaf, "points": [asdict(point) for point in each.points]} for each in self.series],
            "trends": [trend_data(each) for each in self.trends],
        }


def trend_data(trend: Trend) -> dict[str, Any]:
    """Return a trend as JSON data."""
    return {**asdict(trend), "text": trends.sentence(trend, int(time.time()) // DAY)}


def leaves_of(history: History, host: str, fact: str) -> list[str]:
    """Return the leaves of a host whose names begin with `fact`. Raise UserError for an unknown name."""
    hosts = history.hosts()
    if host not in hosts:
        near = text.near(host, hosts, 1)
        hint = (
            f"did you mean {near[0]}?"
            if near
            else f"it has {text.count(len(hosts), 'host')}: nodetune history lists them"
        )
        raise UserError(f"the history does not have {text.plain(host)}: {hint}")
    leaves = history.leaves(host, fact)
    if fact and not leaves:
        raise UserError(f"the history of {host} has no {text.plain(fact)}: nodetune history {host} shows what it has")
    return leaves


def of_host(history: History, host: str, fact: str, since: float) -> Story:
    """Return the story of a host, of leaves whose names begin with `fact`. Raise UserError for an unknown name."""
    leaves = leaves_of(history, host, fact)
    changes = [each for each in history.changes(host, since) if each.leaf.startswith(fact) or each.leaf == "reset"]
    moved = [each for each in history.series_of(host, leaves, since) if each[1]]
    series = tuple(
        Series(leaf, tuple(points), spark(points, kinds.of(leaf) in kinds.COUNTERS))
        for leaf, points in moved
        if fact or any(point.low != points[0].low or point.high != points[0].low for point in points)
    )
    own = tuple(each for each in history.trends() if each.host == host)
    return Story(host, tuple(changes), () if fact else tuple(history.drains(host, since)), series, own)


def spark(points: Sequence[Point], is_counter: bool) -> str:
    """Draw a series: growth of a counter in equal parts of the time, or the highest value in each."""
    first, last = points[0].at, points[-1].at
    parts: list[list[int]] = [[] for _ in range(min(WIDTH, len(points)))]
    before = points[0].low
    for point in points:
        place = (point.at - first) * len(parts) // (last - first + 1)
        grown = point.grown if point.grown is not None else point.high - before
        before = point.high
        parts[place].append(grown if is_counter else point.high)
    values = [sum(part) if is_counter else max(part) if part else None for part in parts]
    known = [each for each in values if each is not None]
    low, high = (0 if is_counter else min(known)), max(known)
    return "".join(
        " " if each is None else BLOCKS[(each - low) * 7 // (high - low) if high > low else 0] for each in values
    )


def number(leaf: str, value: int) -> str:
    """Return a stored number as it was read. The smallest one of a figure means 0."""
    return f"{(value > 1) * value / THOUSANDTHS:,g}" if leaf.startswith(kinds.FIGURES) else f"{value:,}"
