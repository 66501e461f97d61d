"""The history of a fleet or of one host for people at a terminal."""

import datetime
import statistics
import time
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TextIO

from nodetune.api.model import SEVERITIES
from nodetune.audit import explain
from nodetune.foundation import text
from nodetune.history import kinds, timeline, trends
from nodetune.history.points import DAY, Drain, LeafChange, Point
from nodetune.history.timeline import Series, Story
from nodetune.history.trends import Trend
from nodetune.report.text.lines import STYLE, Lines, console

MAX_CHANGES = 40
MAX_SERIES = 30
MAX_HOSTS = 40
SEVERITY = 10
RANK = {name: number for number, name in enumerate(("", *SEVERITIES))}


def print_fleet(stream: TextIO, hosts: Sequence[tuple[str, int]], found: Sequence[Trend]) -> None:
    """Print the trends, and the hosts with the time of their last look."""
    out = Lines(console(stream))
    if found:
        _trends(out, found)
        out.gap()
    out.line((text.count(len(hosts), "host"), "bold"), "" if found else ", no trends")
    for host, at in hosts[:MAX_HOSTS]:
        out.line(f"{text.plain(host)}  last look {moment(at)}", indent="  ")
    _more(out, len(hosts) - MAX_HOSTS, "host")


def print_host(stream: TextIO, told: Story) -> None:
    """Print what changed on a host, which findings came and went, and the numbers that moved."""
    out = Lines(console(stream))
    out.line((text.plain(told.host), "bold"))
    if told.trends:
        out.gap()
        _trends(out, told.trends)
    _changes(out, told.changes)
    _findings(out, told.findings)
    _series(out, told.series)
    if not (told.trends or told.changes or told.findings or told.series):
        out.line("nothing changed", indent="  ")


def moment(at: int) -> str:
    """Return a time in UTC, to the minute."""
    return datetime.datetime.fromtimestamp(at, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M")


def _title(out: Lines, title: str) -> None:
    out.gap()
    out.line((title, "bold"))


def _more(out: Lines, left: int, what: str) -> None:
    if left > 0:
        out.line((f"… and {text.count(left, f'more {what}')}: --format json has all", "dim"), indent="  ")


def _trends(out: Lines, found: Iterable[Trend]) -> None:
    out.line(("TRENDS", "bold"))
    for each in found:
        out.line(trends.sentence(each, int(time.time()) // DAY), indent="  ", hang="    ")


def _changes(out: Lines, found: Sequence[LeafChange]) -> None:
    if not found:
        return
    _title(out, "CHANGES")
    for each in found[-MAX_CHANGES:]:
        was = "" if each.leaf == "reset" else f"{text.value(each.before)} → "
        out.line(
            (moment(each.at), "dim"),
            f"  {text.plain(each.leaf)}  {was}{text.value(each.after)}",
            indent="  ",
            hang="    ",
        )
    _more(out, len(found) - MAX_CHANGES, "older change")


def _findings(out: Lines, found: Sequence[Drain]) -> None:
    if not found:
        return
    _title(out, "FINDINGS")
    severity_of = {each.finding: explain.severity(each.finding) for each in found}
    ranked = sorted(found, key=lambda each: (each.last.gone is not None, -RANK[severity_of[each.finding]]))
    for each in ranked:
        severity = severity_of[each.finding]
        named = f"{text.plain(each.finding)}  {spell(each)}"
        out.line((f"{severity:<{SEVERITY}}", STYLE.get(severity, "")), named, indent="  ", hang="    ")


def spell(found: Drain) -> str:
    """Return when a finding was there last, and how often it came."""
    last = found.last
    often = f", came {found.times} times, once in {text.span(found.between)}" if found.between else ""
    if last.gone is None:
        return f"since {moment(last.since)}{often}"
    return f"from {moment(last.since)} to {moment(last.gone)}{often}"


def _series(out: Lines, found: Sequence[Series]) -> None:
    if not found:
        return
    _title(out, "NUMBERS")
    shown = found[:MAX_SERIES]
    width = max(len(text.plain(each.leaf)) for each in shown)
    for each in shown:
        out.line(
            f"{text.plain(each.leaf):<{width}}  {each.line:<{timeline.WIDTH}}  {summary(each)}",
            indent="  ",
            hang="    ",
        )
    _more(out, len(found) - MAX_SERIES, "number")


def summary(series: Series) -> str:
    """Return the growth of a counter, else the range and the direction of a value."""
    if kinds.of(series.leaf) in kinds.COUNTERS:
        return f"+{series.grown:,}{_growth(series.points)}"
    low, high = min(each.low for each in series.points), max(each.high for each in series.points)
    named = [timeline.number(series.leaf, each) for each in (low, high, series.points[-1].high)]
    return f"{named[0]} to {named[1]}, now {named[2]}{_direction(series.points)}"


def _growth(points: Sequence[Point]) -> str:
    """Return whether a counter grew on the last day, or when it last did."""
    grew = [
        each.at for before, each in pairwise(points) if (each.high - before.high if each.grown is None else each.grown)
    ]
    if not grew:
        return ""
    return ", still growing" if points[-1].at - grew[-1] < DAY else f", not since {text.day(grew[-1])}"


def _direction(points: Sequence[Point]) -> str:
    """Return where a value went: always one way, or its last third against its first, in parts of the whole range."""
    highs = [each.high for each in points]
    steps = [after - before for before, after in pairwise(highs)]
    third = max(1, len(highs) // 3)
    moved = statistics.mean(highs[-third:]) - statistics.mean(highs[:third])
    one_way = min(steps, default=0) >= 0 or max(steps, default=0) <= 0
    if one_way or abs(moved) * 2 > max(highs) - min(highs):
        return ", rose" if highs[-1] > highs[0] else ", fell" if highs[-1] < highs[0] else ""
    return ", up and down"
