"""Read results of `nodetune verify` for the HTML page. This module validates them: the files are untrusted."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from nodetune.facts.machine import Machine
from nodetune.foundation import json_document
from nodetune.foundation import text as plain_text
from nodetune.foundation.json_document import DocumentError
from nodetune.report.text import verify_table
from nodetune.verify import catalogue, figures
from nodetune.verify.catalogue import takes_two_hosts
from nodetune.verify.document import VERIFY_SCHEMA, WRITE
from nodetune.verify.model import FAILED, PASS, PEERS, SHORT, SKIP, UNKNOWN, Figure

LARGEST = 1 << 30
STATUSES = (PASS, SHORT, UNKNOWN)
MISSING = (FAILED, SKIP)
TOLD = {*figures.CONDITIONS, "size", "numa_node"}
PLAIN = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)
HOST = "{host}"
"""Placeholder for the host name in commands. shlex.join would quote it, so no other word equals it."""


class FigureKind(NamedTuple):
    """The common data of all figures of one kind; `key` identifies the kind."""

    key: tuple[str, ...]
    measurement: str
    metric: str
    title: str
    conditions: str
    unit: str
    better: str


class FigureRow(NamedTuple):
    """One figure. `expected` is (kind, bound), `limit` (cause, value); `told` provenance, reason, suspect, again.

    `intensity` has the operations per byte of a product, for the roofline.
    """

    about: FigureKind
    subject: str
    size: int
    value: float
    status: int
    expected: tuple[str, float] | None
    limit: tuple[str, float] | None
    told: tuple[str, str, str, str]
    command: str
    intensity: float = 0.0


class MissingFigure(NamedTuple):
    """Something that could not be measured: `status` is an index in MISSING."""

    measurement: str
    metric: str
    subject: str
    status: int
    reason: str


class Found(NamedTuple):
    """A finding of a verify; status 1 counts as below target."""

    status: int
    title: str
    subjects: str
    next: str


@dataclass
class MeasuredHost:
    """The results of one host in one file."""

    name: str
    time: int
    state: str
    message: str
    machine: str
    rows: list[FigureRow]
    missing: list[MissingFigure]
    findings: list[Found]
    notes: list[str]

    def without(self, measurements: set[str]) -> MeasuredHost:
        """Return the host without these measurements."""
        rows = [each for each in self.rows if each.about.measurement not in measurements]
        return replace(self, rows=rows, missing=[each for each in self.missing if each.measurement not in measurements])

    @property
    def measurements(self) -> set[str]:
        return {each.about.measurement for each in self.rows} | {each.measurement for each in self.missing}


class RecordReader:
    """Turns records into rows during parsing: the JSON objects of a large fleet would take many gigabytes."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], tuple[FigureKind, str, int] | None] = {}

    def read(self, path: Path) -> list[MeasuredHost]:
        """Read a result. Raise DocumentError or OSError."""
        if path.stat().st_size > LARGEST:
            told = "measure in parts and pass the result of each part"
            raise DocumentError(f"{path}: larger than {plain_text.size(LARGEST)}: {told}")
        data = json_document.read(path, VERIFY_SCHEMA, LARGEST, WRITE, self._record)
        if not isinstance(data.get("hosts"), list):
            raise DocumentError(f"{path}: not a result with hosts: {WRITE}")
        time = plain_text.sound_time(data.get("time"))
        return [_host(each, time) for each in data["hosts"] if isinstance(each, dict)]

    def _record(self, found: dict[str, Any]) -> Any:
        if "measurement" not in found or "status" not in found:
            return found
        if found["status"] in MISSING:
            name, metric, subject = (_text(found, key, 80) for key in ("measurement", "metric", "subject"))
            return MissingFigure(name, metric, subject, MISSING.index(found["status"]), _text(found, "reason"))
        value, about = number(found.get("value")), self._about(found)
        if value is None or about is None or found["status"] not in STATUSES:
            return None
        status = STATUSES.index(found["status"])
        given = found.get("about")
        intensity = number(given.get("intensity")) if isinstance(given, dict) else None
        return FigureRow(
            *about, value, status, *_held(found), _told(found), _text(found, "reproduce", 1000), intensity or 0.0
        )

    def _about(self, found: Mapping[str, Any]) -> tuple[FigureKind, str, int] | None:
        given = found.get("about")
        about = {key: value for key, value in given.items() if key in TOLD} if isinstance(given, dict) else {}
        named = {key: found.get(key) for key in ("measurement", "metric", "subject", "unit", "better")}
        key = (repr(named), repr(about))
        if key not in self._known:
            figure = figures.read("", {**named, "samples": [1], "about": about})
            self._known[key] = _described(figure) if isinstance(figure, Figure) else None
        return self._known[key]


def _described(figure: Figure) -> tuple[FigureKind, str, int]:
    """Return (what the figure shares with its kind, its subject, its size if relevant)."""
    alike = figure
    if takes_two_hosts(figure.measurement):  # subjects name both hosts, and are no kind of their own
        alike = replace(figure, subject=figure.subject.rpartition(" ")[0] or "pair of hosts")
    told = {key: each for key, each in figures.conditions(figure).items() if key not in ("size", "numa_node")}
    words = ", ".join(f"{key.replace('_', ' ')} {plain_text.value(each)}" for key, each in told.items())
    size = figures.size(figure) if catalogue.of(figure.measurement).size_matters else 0
    title = figures.title(figure, sized=False)
    names = figure.measurement, figure.metric, title, words, figure.unit, figure.better
    return FigureKind(verify_table.kind(alike), *names), figure.subject, size


def _kind(expected: Mapping[str, Any]) -> str:
    """Return the reference of a figure as reports call it."""
    kind = _text(expected, "kind", 20)
    return "peers" if kind == PEERS else kind


def _text(found: Mapping[str, Any], key: str, longest: int = 400) -> str:
    text = found.get(key)
    return plain_text.plain(text, longest) if isinstance(text, str) else ""


def number(found: Any) -> float | None:
    """Round to five digits, which is more than the page shows."""
    known = isinstance(found, int | float) and not isinstance(found, bool) and 0 <= found < figures.LARGEST
    return float(f"{found:.5g}") if known else None


def _held(found: Mapping[str, Any]) -> tuple[tuple[str, float] | None, tuple[str, float] | None]:
    expected, limit = found.get("expected"), found.get("limit")
    bound = number(expected.get("bound")) if isinstance(expected, dict) else None
    most = number(limit.get("value")) if isinstance(limit, dict) else None
    return (
        (_kind(expected), bound) if isinstance(expected, dict) and bound is not None else None,
        (_text(limit, "what", 80), most) if isinstance(limit, dict) and most else None,
    )


def _told(found: Mapping[str, Any]) -> tuple[str, str, str, str]:
    if found["status"] == PASS and not found.get("reason"):
        return "", "", "", ""
    expected, again = found.get("expected"), found.get("again")
    numbers = [number(each) for each in again] if isinstance(again, list) else []
    provenance = _text(expected, "provenance") if isinstance(expected, dict) else ""
    known = verify_table.numbers(each for each in numbers[:10] if each is not None)
    return provenance, _text(found, "reason"), _text(found, "suspect"), known


def _host(found: Mapping[str, Any], time: int) -> MeasuredHost:
    name, machine = plain_text.plain(found.get("name", "")), found.get("machine")
    given, findings, notes = (_list(found, key) for key in ("measurements", "findings", "notes"))
    return MeasuredHost(
        name,
        time,
        _text(found, "state", 80) or "ok",
        _text(found, "message", 1000).removeprefix(f"{name}: "),
        _machine(machine if isinstance(machine, dict) else {}),
        [each for each in given if isinstance(each, FigureRow)],
        [each for each in given if isinstance(each, MissingFigure)],
        [_finding(each) for each in findings if isinstance(each, dict)],
        [plain_text.plain(each) for each in notes if isinstance(each, str)],
    )


def _list(found: Mapping[str, Any], key: str) -> list[Any]:
    given = found.get(key)
    return given if isinstance(given, list) else []


def _machine(found: Mapping[str, Any]) -> str:
    gpus = found.get("gpus")
    known = gpus if type(gpus) is int and 0 <= gpus < 1000 else 0
    return Machine(_text(found, "model", 80), known, _text(found, "fabric", 20), cpu=_text(found, "cpu", 80)).title


def _finding(found: Mapping[str, Any]) -> Found:
    subjects = plain_text.names([each for each in _list(found, "subjects") if isinstance(each, str)])
    return Found(int(found.get("status") == SHORT), _text(found, "title"), subjects, _text(found, "next"))


def united(parts: Sequence[MeasuredHost]) -> MeasuredHost:
    """Merge one host from several files: each measurement comes from the newest file that contains it."""
    newest, *older = sorted(parts, key=lambda each: each.time, reverse=True)
    known = newest.measurements
    for each in older:
        left = each.without(known)
        if left.measurements:
            newest.rows += left.rows
            newest.missing += left.missing
            newest.findings += each.findings
            newest.notes += each.notes
            known |= left.measurements
    return newest


def command(given: str, host: str) -> str:
    """Return the command with HOST for the host's name, or "" if it is not nodetune's: people run it in a shell."""
    words = (HOST if word == host and PLAIN.fullmatch(host) else word for word in given.split(" "))
    template = " ".join(words)
    return template if _ours(template.replace(HOST, "host")) else ""


@lru_cache(10_000)
def _ours(given: str) -> bool:
    try:
        words = shlex.split(given)
    except ValueError:
        return False
    return words[:2] == ["nodetune", "verify"] and shlex.join(words) == given
