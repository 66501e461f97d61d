"""Rates in Prometheus' text format, and the points of all numbers as rows."""

from collections.abc import Iterable, Iterator
from typing import TextIO

from nodetune.history.points import Point, Rate
from nodetune.report.prometheus import line

HEAD = ("host", "fact", "time", "low", "high", "grown")


def write_prometheus(rates: Iterable[Rate], stream: TextIO) -> None:
    """Write the growth of each counter, a day, from a look about 24 hours before the last one."""
    stream.write("# HELP nodetune_history_growth_per_day Growth a day since the look about 24 hours before the last.\n")
    stream.write("# TYPE nodetune_history_growth_per_day gauge\n")
    stream.writelines(
        line("nodetune_history_growth_per_day", {"host": each.host, "fact": each.leaf}, each.a_day) for each in rates
    )


def rows(host: str, series: Iterable[tuple[str, list[Point]]]) -> Iterator[tuple[str, ...]]:
    """Yield a row a point: a day of the past has its growth, a look has none."""
    for leaf, points in series:
        for point in points:
            grown = "" if point.grown is None else str(point.grown)
            yield host, leaf, str(point.at), str(point.low), str(point.high), grown
