"""The history of a fleet or of one host for people at a terminal."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import TextIO

from nodetune.foundation import text
from nodetune.history import kinds, story, trends
from nodetune.history.points import Change, Drain
from nodetune.history.story import Series, Story
from nodetune.history.trends import Trend
from nodetune.report.text.lines import Lines, console

MOST_CHANGES = 40
MOST_SERIES = 30
MOST_HOSTS = 40


def print_fleet(stream: TextIO, hosts: Sequence[tuple[str, int]], found: Sequence[Trend]) -> None:
    """Print the trends, and the hosts with the time of their last look."""
    out = Lines(console(stream))
    _trends(out, found)
    _title(out, text.count(len(hosts), "host"))
    for host, at in hosts[:MOST_HOSTS]:
        out.line(f"{text.plain(host)}  last look {moment(at)}", indent="  ")
    _more(out, len(hosts) - MOST_HOSTS, "host")


def print_host(stream: TextIO, told: Story) -> None:
    """Print what changed on a host, which findings came and went, and the numbers that moved."""
    out = Lines(console(stream))
    out.line((text.plain(told.host), "bold"))
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
    for number, each in enumerate(found):
        if not number:
            _title(out, "TRENDS")
        out.line(trends.sentence(each), indent="  ", hang="    ")


def _changes(out: Lines, found: Sequence[Change]) -> None:
    if not found:
        return
    _title(out, "CHANGES")
    for each in found[-MOST_CHANGES:]:
        was = "" if each.leaf == "reset" else f"{text.value(each.before)} → "
        out.line(
            (moment(each.at), "dim"),
            f"  {text.plain(each.leaf)}  {was}{text.value(each.after)}",
            indent="  ",
            hang="    ",
        )
    _more(out, len(found) - MOST_CHANGES, "older change")


def _findings(out: Lines, found: Sequence[Drain]) -> None:
    if not found:
        return
    _title(out, "FINDINGS")
    for each in found:
        last = each.last
        now = (
            f"since {moment(last.since)}" if last.gone is None else f"from {moment(last.since)} to {moment(last.gone)}"
        )
        often = f", came {each.times} times, once in {text.span(each.between)}" if each.between else ""
        out.line(f"{text.plain(each.finding)}  {now}{often}", indent="  ", hang="    ")


def _series(out: Lines, found: Sequence[Series]) -> None:
    if not found:
        return
    _title(out, "NUMBERS")
    shown = found[:MOST_SERIES]
    width = max(len(text.plain(each.leaf)) for each in shown)
    for each in shown:
        out.line(
            f"{text.plain(each.leaf):<{width}}  {each.line:<{story.WIDTH}}  {_summary(each)}", indent="  ", hang="    "
        )
    _more(out, len(found) - MOST_SERIES, "number")


def _summary(series: Series) -> str:
    if kinds.of(series.leaf) in kinds.COUNTERS:
        return f"+{series.grown:,}"
    low, high = min(each.low for each in series.points), max(each.high for each in series.points)
    named = [story.number(series.leaf, each) for each in (low, high, series.points[-1].high)]
    return f"{named[0]} to {named[1]}, now {named[2]}"
