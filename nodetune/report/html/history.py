"""The history of one host as one HTML page that opens from disk: what changed, its findings, and a plot of each number. No script."""

from collections.abc import Sequence
from typing import TextIO

from nodetune.foundation import text
from nodetune.history import trends
from nodetune.history.points import Point
from nodetune.history.timeline import Story
from nodetune.report.html import plain
from nodetune.report.text import history as words

WIDTH, HEIGHT, MARGIN = 1000, 60, 3
"""Units of a plot; the page stretches it to its width."""

MAX_MARKS = 100


def write(stream: TextIO, told: Story) -> None:
    """Write the page of a host."""
    times = [point.at for each in told.series for point in each.points]
    first, last = min(times, default=0), max(times, default=0)
    marks = sorted({each.at for each in told.changes if first <= each.at <= last})[-MAX_MARKS:]
    plain.write(
        stream,
        "history.html",
        told=told,
        begun=words.moment(first),
        ended=words.moment(last),
        marks=[_across(at, first, last) for at in marks],
        plots=[(each, words.summary(each), line(each.points, first, last)) for each in told.series],
        width=WIDTH,
        height=HEIGHT,
        moment=words.moment,
        value=text.value,
        plain=text.plain,
        sentence=trends.sentence,
        spell=words.spell,
    )


def line(points: Sequence[Point], first: int, last: int) -> str:
    """Return the points of a line from the lowest to the highest value, by time."""
    low, high = min(each.low for each in points), max(each.high for each in points)
    room = HEIGHT - 2 * MARGIN
    drawn = (
        (_across(each.at, first, last), HEIGHT - MARGIN - room * (each.high - low) / max(high - low, 1))
        for each in points
    )
    return " ".join(f"{across},{down:.1f}" for across, down in drawn)


def _across(at: int, first: int, last: int) -> str:
    return f"{WIDTH * (at - first) / max(last - first, 1):.1f}"
