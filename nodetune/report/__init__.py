"""Reporters: one file per format, each a function of results, imported on demand."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from nodetune.api.model import Check, HostResult

if TYPE_CHECKING:
    from nodetune.audit.scorecards import Scorecard
    from nodetune.config.overlay import Overlay
    from nodetune.report.sections import CommandOptions

Write = Callable[[Sequence[HostResult], TextIO], None]


@dataclass(frozen=True)
class About:
    """The input of reports except results: checks by id, options that select hosts, threshold, other files.

    `judged` are the options that select the profile and the site file, which `nodetune explain` takes too; `selected`
    those that select checks, `compared` those that say how hosts are compared. `saved`: the facts are in a file.
    `full`: the text has everything about each finding. `against`: the report is about the criteria of this scorecard.
    `site` is the site file, and `validate` the command that names its faults.
    """

    checks: Mapping[str, Check]
    asked: str
    fail_on: str
    previous: Path | None = None
    measurements: tuple[Path, ...] = ()
    by_host: bool = False
    judged: str = ""
    selected: str = ""
    saved: bool = False
    full: bool = False
    against: Scorecard | None = None
    compared: str = ""
    site: Overlay | None = None
    validate: str = ""


AGAINST_FORMATS = ("text", "json", "markdown")
"""The formats of a report on a scorecard."""

FORMATS = ("text", "json", "html", "junit", "markdown", "prometheus", "nfd", "lines", "csv")


def writer(output_format: str, about: About) -> Write:
    """Return what writes one of FORMATS, before any host is contacted. Raise yaml_lines.FileError."""
    match output_format:
        case "text" if about.site and about.site.waivers and not about.against:
            return partial(_and_waivers, about.site, about.validate, _text(about))
        case "text":
            return _text(about)
        case "json":
            from nodetune.audit import document

            return partial(document.write_audit, against=about.against) if about.against else document.write_audit
        case "html":
            return _html(about)
        case "markdown" if about.against:
            from nodetune.report import scorecard_markdown

            return partial(scorecard_markdown.write, card=about.against)
        case "junit":
            from nodetune.report import junit

            return partial(junit.write, checks=about.checks, fail_on=about.fail_on, judged=about.judged)
        case "markdown":
            from nodetune.report import markdown

            return partial(markdown.write, checks=about.checks, commands=_commands(about))
        case "prometheus":
            from nodetune.report import prometheus

            return partial(prometheus.write, checks=about.checks)
        case "lines" | "nfd":
            write: Write = import_module(f"nodetune.report.{output_format}").write
            return write
    from nodetune.report import csv

    return partial(csv.write, checks=about.checks)


def _text(about: About) -> Write:
    if about.against:
        from nodetune.report.text import scorecard

        return partial(scorecard.write, card=about.against, commands=_commands(about), full=about.full)
    if about.full or about.by_host:
        from nodetune.report.text import full

        return partial(full.write, commands=_commands(about), checks=about.checks, by_host=about.by_host)
    from nodetune.report.text import audit

    return partial(audit.write, commands=_commands(about))


def _and_waivers(site: Overlay, validate: str, write: Write, results: Sequence[HostResult], stream: TextIO) -> None:
    """Write a report, then the waivers that have no effect."""
    from nodetune.audit import idle_waivers  # few runs have waivers
    from nodetune.report.text import waivers

    write(results, stream)
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    waivers.write(list(idle_waivers.idle(site, results, today)), validate, stream)


def _commands(about: About) -> CommandOptions:
    from nodetune.report.sections import CommandOptions

    return CommandOptions(about.asked, about.selected, about.saved, about.compared)


def _html(about: About) -> Write:
    from nodetune.report.html import page, previous

    before, measured = previous.read(about.previous) if about.previous else None, None
    if about.measurements:
        from nodetune.report.html import measured as measured_page

        measured = measured_page.read(about.measurements)
    return partial(
        page.write,
        checks=about.checks,
        commands=_commands(about),
        before=before,
        measured=measured,
        judged=about.judged,
    )
