"""Reporters: one file per format, each a function of results, imported on demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from nodetune.api.model import Check, HostResult

if TYPE_CHECKING:
    from nodetune.report.html.measured import Measured

Write = Callable[[Sequence[HostResult], TextIO], None]


@dataclass(frozen=True)
class About:
    """The input of reports except results: checks by id, options that select hosts, threshold, other files.

    `judged` are the options that select the profile and the site file, which `nodetune explain` takes too; `selected`
    those that select checks.
    """

    checks: Mapping[str, Check]
    asked: str
    fail_on: str
    previous: Path | None = None
    measurements: tuple[Path, ...] = ()
    by_host: bool = False
    judged: str = ""
    selected: str = ""


def _text(about: About) -> Write:
    from nodetune.report.text import audit

    return partial(audit.write, asked=about.asked, by_host=about.by_host, judged=about.judged, selected=about.selected)


def _json(_about: About) -> Write:
    from nodetune.audit import document as audit

    return audit.write_audit


def _html(about: About) -> Write:
    from nodetune.report.html import page, previous

    before = previous.read(about.previous) if about.previous else None
    measured = _measured(about.measurements) if about.measurements else None
    return partial(
        page.write, checks=about.checks, asked=about.asked, before=before, measured=measured, judged=about.judged
    )


def _measured(files: tuple[Path, ...]) -> Measured:
    from nodetune.report.html import measured as measured_page

    return measured_page.read(files)


def _junit(about: About) -> Write:
    from nodetune.report import junit

    return partial(junit.write, checks=about.checks, fail_on=about.fail_on, judged=about.judged)


def _markdown(about: About) -> Write:
    from nodetune.report import markdown

    return partial(markdown.write, checks=about.checks, asked=about.asked, judged=about.judged)


def _prometheus(about: About) -> Write:
    from nodetune.report import prometheus

    return partial(prometheus.write, checks=about.checks)


def _lines(_about: About) -> Write:
    from nodetune.report import lines

    return lines.write


def _csv(about: About) -> Write:
    from nodetune.report import csv

    return partial(csv.write, checks=about.checks)


MAKERS: dict[str, Callable[[About], Write]] = {
    "text": _text,
    "json": _json,
    "html": _html,
    "junit": _junit,
    "markdown": _markdown,
    "prometheus": _prometheus,
    "lines": _lines,
    "csv": _csv,
}
"""Format → the function that makes its writer, before any host is contacted. It raises yaml_lines.FileError."""
