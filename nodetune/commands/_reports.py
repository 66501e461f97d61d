"""The reports of an audit that are files for others to read: which there are, and how each is written."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from nodetune.model import Check, HostResult

if TYPE_CHECKING:
    from nodetune.report.html_measured import Measured

Write = Callable[[Iterable[HostResult], TextIO], None]


@dataclass(frozen=True)
class About:
    """What reports say beside the results: the checks by id, the options that name the hosts, the threshold, other files."""

    checks: Mapping[str, Check]
    asked: str
    fail_on: str
    since: Path | None = None
    measured: tuple[Path, ...] = ()


def writer(output_format: str, about: About, output: Path | None) -> Write | None:
    """What writes this format, made before any host is touched; None for text and json. Raises located.BadFile."""
    if about.since and output_format != "html":
        raise click.UsageError("--since is for --format html (for others: nodetune diff BEFORE AFTER)")
    if about.measured and output_format != "html":
        raise click.UsageError("--measured is for --format html: its figures are drawn on the page")
    if output_format == "html" and output is None and sys.stdout.isatty():
        raise click.UsageError("--format html is a page for a browser: add -o FILE.html")
    made = MAKERS.get(output_format)
    return made(about) if made else None


def _html(about: About) -> Write:
    from nodetune.report import html, html_since

    before = html_since.read(about.since) if about.since else None
    measured = _measured(about.measured) if about.measured else None
    return partial(html.write, checks=about.checks, asked=about.asked, before=before, measured=measured)


def _measured(files: tuple[Path, ...]) -> Measured:
    from nodetune.report import html_measured

    return html_measured.read(files)


def _junit(about: About) -> Write:
    from nodetune.report import junit

    return partial(junit.write, checks=about.checks, fail_on=about.fail_on)


def _markdown(about: About) -> Write:
    from nodetune.report import markdown

    return partial(markdown.write, checks=about.checks, asked=about.asked)


def _prometheus(about: About) -> Write:
    from nodetune.report import prometheus

    return partial(prometheus.write, checks=about.checks)


MAKERS: dict[str, Callable[[About], Write]] = {
    "html": _html,
    "junit": _junit,
    "markdown": _markdown,
    "prometheus": _prometheus,
}
