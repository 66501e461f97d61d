"""The figures of `nodetune verify` for the HTML page: kinds, distributions, and single figures up to a limit."""

import statistics
from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nodetune.foundation import by_key
from nodetune.report.html.data import ValueTable
from nodetune.report.html.measured_reader import (
    STATUSES,
    FigureKind,
    FigureRow,
    MeasuredHost,
    RecordReader,
    command,
    number,
    united,
)
from nodetune.verify.model import PASS, SHORT

MAX_SINGLE = 500_000
"""The most figures that the page has one by one. `Measured._kept` selects them if there are more."""
BINS = 120


class _KindFigures:
    """All figures of one kind on one kind of machine."""

    def __init__(self, about: FigureKind, machine: str) -> None:
        self.about, self.machine = about, machine
        self.counts = [0, 0, 0]
        self.hosts = [0, 0]
        self._values: dict[int, tuple[array[float], array[float]]] = {}
        self._bounds: dict[tuple[int, str], list[float]] = {}
        self._limits: dict[str, list[float]] = {}

    @property
    def sized(self) -> bool:
        return len(self._values) > 1

    def add(self, rows: Iterable[FigureRow]) -> None:
        """Add the figures of one host."""
        short = False
        for each in rows:
            fell = each.status == STATUSES.index(SHORT)
            self.counts[each.status] += 1
            self._values.setdefault(each.size, (array("d"), array("d")))[fell].append(each.value)
            if each.expected:
                _widened(self._bounds, (each.size, each.expected[0]), each.expected[1])
            if each.limit:
                _widened(self._limits, each.limit[0], each.limit[1])
            short |= fell
        self.hosts[0] += 1
        self.hosts[1] += short

    def document(self) -> dict[str, Any]:
        about = self.about
        return {
            "measurement": about.measurement,
            "metric": about.metric,
            "title": about.title,
            "conditions": about.conditions,
            "machine": self.machine,
            "unit": about.unit,
            "better": about.better,
            "counts": self.counts,
            "hosts": self.hosts,
            "limits": [[what, *ends] for what, ends in self._limits.items()],
            "sizes": [self._size(size) for size in sorted(self._values)],
            "bins": None if self.sized else self._bins(),
        }

    def _size(self, size: int) -> list[Any]:
        """Return [bytes, minimum and maximum that passed, median of all, count below target, bounds by kind]."""
        good, short = self._values[size]
        median = number(statistics.median([*good, *short]))
        ends = [min(good), max(good)] if good else [None, None]
        bounds = [[kind, *between] for (its, kind), between in self._bounds.items() if its == size]
        return [size, *ends, median, len(short), bounds]

    def _bins(self) -> list[Any]:
        """Return [start of the first bin, bin width, counts not below target, counts below target]."""
        ((good, short),) = self._values.values()
        low, high = min([*good, *short]), max([*good, *short])
        step = (high - low) / BINS
        counts = [[0] * BINS, [0] * BINS]
        for values, into in zip((good, short), counts, strict=True):
            for value in values:
                into[min(BINS - 1, int((value - low) / step)) if step else 0] += 1
        return [low, step, *counts]


def _widened(known: dict[Any, list[float]], key: Any, value: float) -> None:
    ends = known.setdefault(key, [value, value])
    ends[0], ends[1] = min(ends[0], value), max(ends[1], value)


class FigureData:
    """The figures of several files as the page's data."""

    def __init__(self, parts: Iterable[MeasuredHost]) -> None:
        given = list(parts)
        self._times = [each.time for each in given]
        self._hosts = [united(each) for each in by_key((each.name, each) for each in given).values()]
        self._kinds: dict[tuple[Any, ...], _KindFigures] = {}
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._texts, self._slots, self._shapes, self._limits = (ValueTable() for _ in range(4))
        self._expected, self._held, self._missing, self._findings = (ValueTable() for _ in range(4))
        for host in self._hosts:
            self._count(host)

    def _count(self, host: MeasuredHost) -> None:
        for key, rows in by_key(((each.about.key, host.machine), each) for each in host.rows).items():
            if key not in self._kinds:
                self._numbers[key] = len(self._kinds)
                self._kinds[key] = _KindFigures(rows[0].about, host.machine)
            self._kinds[key].add(rows)

    def document(self) -> dict[str, Any]:
        """Return everything as JSON data."""
        every = sum(len(host.rows) for host in self._hosts)
        hosts = [self._host(host, every > MAX_SINGLE) for host in self._hosts]
        return {
            "times": [min(self._times, default=0), max(self._times, default=0)],
            "every": every,
            "kinds": [each.document() for each in self._kinds.values()],
            "texts": self._texts.values(),
            "slots": self._slots.values(),
            "shapes": self._shapes.values(),
            "limits": self._limits.values(),
            "expected": self._expected.values(),
            "held": self._held.values(),
            "missing": self._missing.values(),
            "findings": self._findings.values(),
            "hosts": hosts,
        }

    def _host(self, host: MeasuredHost, many: bool) -> list[Any]:
        text, rows = self._texts.number, self._kept(host) if many else host.rows
        shape = self._shapes.number(tuple([self._slot(each, host) for each in rows]))
        held = self._held.number(tuple([self._expected.number(self._bound(each)) for each in rows]))
        odd = [
            [place, each.status, *map(text, each.told)]
            for place, each in enumerate(rows)
            if STATUSES[each.status] != PASS or each.told[1]
        ]
        missing = [
            (each.status, text(each.measurement), text(each.metric), text(each.subject), text(each.reason))
            for each in host.missing
        ]
        found = [(each.status, *map(text, each[1:])) for each in host.findings]
        return [
            host.name,
            text(host.state),
            text(host.message),
            shape,
            [each.value for each in rows],
            held,
            odd,
            [self._missing.number(each) for each in missing],
            [self._findings.number(each) for each in found],
            [text(each) for each in host.notes],
        ]

    def _kept(self, host: MeasuredHost) -> list[FigureRow]:
        """Of too many figures, keep those below target, curves over sizes, and the worst of each other kind."""
        worst: dict[tuple[str, ...], FigureRow] = {}
        for each in host.rows:
            known = worst.setdefault(each.about.key, each)
            sign = 1 if each.about.better == "higher" else -1
            if sign * (known.value - each.value) > 0:
                worst[each.about.key] = each
        return [
            each
            for each in host.rows
            if STATUSES[each.status] == SHORT
            or self._kinds[each.about.key, host.machine].sized
            or worst[each.about.key] is each
        ]

    def _slot(self, row: FigureRow, host: MeasuredHost) -> int:
        """Return the slot of [kind, subject, bytes, command, limit, intensity], which equal figures of similar hosts share."""
        text = self._texts.number
        kind = self._numbers[row.about.key, host.machine]
        again, limit = text(command(row.command, host.name)), self._limits.number(row.limit)
        return self._slots.number((kind, text(row.subject), row.size, again, limit, row.intensity))

    def _bound(self, row: FigureRow) -> tuple[int, float] | None:
        """Round to four digits because bounds from peers differ slightly between hosts."""
        return (self._texts.number(row.expected[0]), float(f"{row.expected[1]:.4g}")) if row.expected else None


def read(paths: Iterable[Path]) -> FigureData:
    """Read the figures of the files. Raise FileError."""
    reader = RecordReader()
    return FigureData(host for path in paths for host in reader.read(path))
