"""Detects degradation trends: a figure far above its own past and above its peers, on three of five days, worst today. Pure.

The figures were chosen by simulation: see benchmarks/simulated_year.py, which holds the rule against planted deaths.
"""

import datetime
import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nodetune.api import faults
from nodetune.api.conclusion import MEASURED, Conclusion, Next
from nodetune.api.device import Device
from nodetune.foundation import by_key, text
from nodetune.history import kinds
from nodetune.statistics import thresholds

SOURCE, FAULT = "trend", "part-degrading"


@dataclass(frozen=True)
class LeafSeries:
    """A judged series: its figure today and in the past (day ago → figure), and its hits (day ago → figure)."""

    host: str
    name: str
    figure: int
    past: Mapping[int, int] = field(default_factory=dict)
    hits: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class SeriesVerdict:
    """The usual figure of a part, whether today is too much, and the share of its peers that grew less."""

    part: LeafSeries
    usual: int
    hit: bool
    less: float
    peers: int


@dataclass(frozen=True)
class Trend:
    """A degrading part. `figure` is that of `day`; it reaches `limit` in `days` (None: unknown)."""

    host: str
    name: str
    figure: int
    usual: int
    hits: int
    less: float
    peers: int
    day: int = 0
    limit: int | None = None
    days: float | None = None
    doubles: float | None = None


def is_heat(name: str) -> bool:
    """Tell whether a figure is in °C."""
    return kinds.of(name) == "heat"


def subject(name: str) -> str:
    """Return the part that a series is about: `GPU3`; empty for the host."""
    return name.partition("/")[2].partition("/")[0]


def family(name: str) -> str:
    """Return the fact and item of a series, without its subject: its peers have the same."""
    fact, *below = name.split("/")
    return f"{fact}/{below[-1]}" if len(below) > 1 else fact


def judge(parts: Sequence[LeafSeries], peers: int, hosts: int = 1) -> list[SeriesVerdict]:
    """Judge the parts of one family today. `peers`: how many there are on all `hosts`, with those whose figure is zero.

    A part is compared with those of other hosts: all links of a board may die together. On a single host, with the others there.
    """
    if not parts:
        return []
    heat = is_heat(parts[0].name)
    figures = sorted(each.figure for each in parts)
    top = _top(figures, peers)
    usual = [_usual(each, heat, top, peers) for each in parts]
    growth = [
        0.0 if known is None else _growth(each.figure, known, heat) for each, known in zip(parts, usual, strict=True)
    ]
    ordered = sorted(growth)
    own = by_key((part.host, grew) for part, grew in zip(parts, growth, strict=True)) if hosts > 1 else {}
    found = []
    for part, known, grew in zip(parts, usual, growth, strict=True):
        others = max(peers - 1, 0)
        alike = grew * thresholds.ALIKE_GROWTH
        near = sum(each >= alike for each in own[part.host]) if hosts > 1 else 1
        as_much = max(len(ordered) - bisect_left(ordered, alike) - near, 0)
        hit = known is not None and _is_much(part.figure, grew, heat) and as_much <= others // 100
        found.append(SeriesVerdict(part, known or 0, hit, 1 - as_much / others if others else 1.0, others))
    return found


def _top(figures: Sequence[int], peers: int) -> int:
    """Return the 99th percentile of the figures, of which those of zero are left out."""
    place = len(figures) - 1 - peers // 100
    return figures[place] if place >= 0 else 0


def _usual(part: LeafSeries, heat: bool, top: int, peers: int) -> int | None:
    """Return what a part usually has: by its own past, else by its peers; None if neither says."""
    past = sorted(figure for ago, figure in part.past.items() if ago in thresholds.PAST)
    if len(past) >= thresholds.MIN_PAST_DAYS:
        return past[len(past) // 2 if heat else len(past) * 9 // 10]
    if peers < thresholds.MIN_TREND_PEERS:
        return None
    return top if heat else 3 * top


def _growth(figure: int, usual: int, heat: bool) -> float:
    return figure - usual if heat else (figure + thresholds.STEADY) / (usual + thresholds.STEADY)


def _is_much(figure: int, growth: float, heat: bool) -> bool:
    return (
        growth >= thresholds.TREND_DEGREES
        if heat
        else figure >= thresholds.MIN_GROWTH and growth >= thresholds.TREND_FACTOR
    )


def trend(judged: SeriesVerdict, day: int = 0) -> Trend | None:
    """Return the trend of a part that had too much today, if it had on other days too and less than today.

    `day`: of today, since 1970.
    """
    part = judged.part
    if not judged.hit:
        return None
    recent = {ago: figure for ago, figure in part.hits.items() if 0 < ago < thresholds.RECENT_DAYS}
    if len(recent) + 1 < thresholds.TREND_DAYS or max(recent.values()) > part.figure:
        return None
    limit = kinds.limit(part.name)
    days, doubles = _ahead(part.figure, recent, limit, is_heat(part.name))
    return Trend(
        part.host,
        part.name,
        part.figure,
        judged.usual,
        len(recent) + 1,
        judged.less,
        judged.peers,
        day,
        limit,
        days,
        doubles,
    )


def _ahead(figure: int, recent: Mapping[int, int], limit: int | None, heat: bool) -> tuple[float | None, float | None]:
    """Return the days until the limit, and those in which the figure doubles, by its growth since the first of the days."""
    ago = max(recent)
    if heat:
        step = (figure - recent[ago]) / ago
        return ((limit - figure) / step if limit and figure < limit and step > 0 else None), None
    step = math.log(figure / recent[ago]) / ago
    if step <= 0:
        return None, None
    days = math.log(limit / figure) / step if limit and figure < limit else None
    return days, math.log(2) / step


def sentence(trend: Trend, today: int = 0) -> str:
    """Describe a trend, with the day on which it reaches its limit. `today`, in days since 1970: older ones get their date."""
    subject, _, item = trend.name.partition("/")[2].rpartition("/")
    what = text.plain(trend.name.replace(f"/{subject}/", "/") if subject else trend.name.partition("/")[0])
    part = f"{text.plain(subject or item)} of {text.plain(trend.host)}" if subject or item else text.plain(trend.host)
    if is_heat(trend.name):
        told = f"{part}: {trend.figure} °C above the other GPUs of its host ({what}), usually {trend.usual} °C"
    else:
        told = f"{part}: {what} grew by {trend.figure:,} in 24 hours, usually by at most {trend.usual:,}"
    told += (
        f"; so on {trend.hits} of the last {thresholds.RECENT_DAYS} days, most today"
        if trend.day >= today
        else _once(trend)
    )
    if trend.peers:
        told += f"; {trend.less * 100:.3g} % of its {text.count(trend.peers, 'peer')} grew less"
    if trend.days is not None and trend.limit is not None:
        return f"{told}; at this growth it passes {trend.limit:,} a day on {_date(trend.day + math.ceil(trend.days))}"
    return f"{told}; it doubles in {trend.doubles:.1f} days" if trend.doubles else told


def conclusion(trend: Trend, now: int) -> Conclusion:
    """Return what a trend concludes. `now`: Unix time of the judgement."""
    row, part = faults.row(FAULT), text.plain(subject(trend.name))
    return Conclusion(
        FAULT,
        SOURCE,
        (trend.host,),
        row.severity,
        sentence(trend),
        now,
        Device(part, kind="gpu" if part.startswith("GPU") else "") if part else None,
        text.plain(family(trend.name)),
        sure=MEASURED,
        observed=trend.figure,
        wanted=trend.usual,
        who=row.who,
        next=Next("history", (trend.host, trend.name)),
    )


def _once(trend: Trend) -> str:
    return f"; so on {trend.hits} of {thresholds.RECENT_DAYS} days, most on {_date(trend.day)}, the last day that was judged"


def _date(day: int) -> str:
    return (datetime.date(1970, 1, 1) + datetime.timedelta(days=day)).isoformat()
