"""`nodetune status`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nodetune.cli import host_options, options, requests, settings
from nodetune.cli.terminal import Terminal
from nodetune.foundation import UserError, exit_codes, text
from nodetune.hosts import patterns
from nodetune.report.status import FORMATS, write
from nodetune.report.status.proposed import Asked
from nodetune.report.status.request import StatusRequest
from nodetune.report.status.standing import DAY, Known, Limits, standing

if TYPE_CHECKING:
    from nodetune.api.conclusion import Examined

LARGEST = 2 << 30
MAX_ACTIONS_AGE = 400 * DAY
"""Older actions say nothing about today."""


class StatusError(UserError):
    """A host or a document that cannot be used; one line."""


@requests.command("status", StatusRequest)
@click.argument("words", nargs=-1, metavar="[HOST] [DOCUMENT]...")
@options.history
@host_options.named
@options.judging
@click.option(
    "--stale",
    callback=options.span,
    default="7d",
    show_default=True,
    metavar="TIME",
    help="Hosts that nobody examined for this long are unknown.",
)
@click.option(
    "--since",
    callback=options.span,
    default="30d",
    show_default=True,
    metavar="TIME",
    help="How far back actions are shown (36h, 30d).",
)
@options.fail_on
@options.format_option(list(FORMATS))
@options.output
def command(request: StatusRequest, words: tuple[str, ...], output_format: str, output: Path | None) -> int:
    """Show open faults of hosts from all sources, and what was done.

    \b
    nodetune status --history fleet.db           the fleet: unknown hosts first, then the worst first
    nodetune status -i prod                      with hosts that nobody ever examined (history = in nodetune.toml)
    nodetune status gpu017                       one host: faults, what was done, last examinations
    nodetune status audit.json verify.json       without a history: JSON documents of any command
    nodetune status --format csv -o open.csv     a row for each host and fault

    A DOCUMENT ends in .json or has a slash. A fault is open until an examination proves it good.

    Exit code: 0 nothing of --fail-on or above is open, 1 something is, 2 usage, 3 a host is stale, was never examined,
    or is unknown in part, or the history is damaged. 1 wins over 3.
    """
    paths, host = _told_apart(words)
    if not (request.history or paths):
        raise click.UsageError(
            "give --history FILE|URL, or history = in nodetune.toml, or documents such as audit.json"
        )
    now = int(time.time())
    only = _selected(request)
    known = _known(request.history, paths, now, host)
    every = _names(known) | {*(only or ())}
    if host and host not in every:
        raise _unknown_host(host, every)
    if request.limit and only is None:
        only = patterns.pick(request.limit, sorted(every), {})
    found = standing(known, Limits(now, request.stale, request.since, request.fail_on), only, host)
    implied = settings.is_implicit(click.get_current_context(), "history")
    asked = Asked(
        request.inventory or "",
        request.limit or "",
        request.profiles,
        tuple(map(str, request.site)),
        frozenset(only or ()),
        options.shown_place(request.history) if request.history and not implied else "",
    )
    with options.writing(output) as stream:
        write(found, asked, output_format, stream)
    return found.code or exit_codes.of_status(failing=False, incomplete=known.damaged)


def _told_apart(words: Sequence[str]) -> tuple[list[Path], str]:
    """Return the documents and the host."""
    paths = [Path(word) for word in words if _is_path(word)]
    hosts = [text.plain(word, 64) for word in words if not _is_path(word)]
    if len(hosts) > 1:
        raise click.UsageError(f"{hosts[0]} and {hosts[1]}: give one HOST; a document ends in .json, or: ./{hosts[1]}")
    return paths, next((word for word in words if not _is_path(word)), "")


def _is_path(word: str) -> bool:
    return "/" in word or word.endswith(".json")


def _selected(request: StatusRequest) -> list[str] | None:
    """Return the hosts that -i and -l select; None without an inventory."""
    if not request.inventory:
        return None
    from nodetune.hosts.inventory import selection

    typed = host_options.HostOptions(inventory=request.inventory, limit=request.limit)
    return [target.name for target in selection.selected(typed.built())]


def _known(history: str, paths: Sequence[Path], now: int, host: str) -> Known:
    """Read the history, and what documents say after it."""
    from nodetune.history import closing

    known = _of_history(history, now, host) if history else Known()
    if not paths:
        return known
    every = sorted(map(_document, paths), key=_moment)
    before = {(source, name): at for source, name, at, _ in known.examined}
    settled = closing.folded(every, known.open, before)
    looked = [(one.source, one.host, one.at, one.unjudged) for each in every for one in each.examinations]
    hosts = {*known.hosts, *(name for each in every for one in each.conclusions for name in one.hosts)}
    return replace(known, open=settled.open, examined=[*known.examined, *looked], hosts=sorted(hosts))


def _of_history(place: str, now: int, host: str) -> Known:
    from nodetune.history.history import History

    with History(place, Terminal(), make=False) as history:
        names, some = history.hosts(), [host] if host else []
        if host and host not in names:
            return Known(hosts=names)
        known = history.open(some), history.examined(some), history.actions(some, now - MAX_ACTIONS_AGE), names
        return Known(*known, damaged=history.is_damaged)


def _document(path: Path) -> Examined:
    """Return the conclusions of a document. Raise StatusError, or FactsError for a damaged one."""
    from nodetune.api import conclusion_json
    from nodetune.facts import document
    from nodetune.foundation import file_io

    if not path.is_file():
        raise StatusError(f"{path}: no such file")
    told = document.parse(file_io.read(path, LARGEST), str(path))
    schema = told.get("schema") if isinstance(told, dict) else None
    if not str(schema).startswith("nodetune."):
        raise StatusError(f"{path}: not a JSON document of nodetune: give what --format json wrote")
    if "facts" in told:
        raise StatusError(f"{path}: facts conclude nothing: nodetune audit --facts {path} --format json -o audit.json")
    if "examined" not in told:
        of = f"nodetune {text.plain(told['nodetune'], 40)}" if "nodetune" in told else "an earlier nodetune"
        raise StatusError(
            f"{path}: {text.plain(schema, 40)} of {of} has no conclusions: make it again with this version"
        )
    try:
        return conclusion_json.read(told)
    except ValueError as problem:
        raise StatusError(f"{path}: {text.plain(problem, 200)}") from None


def _moment(found: Examined) -> int:
    return max((*(each.at for each in found.examinations), *(each.at for each in found.conclusions)), default=0)


def _names(known: Known) -> set[str]:
    told = (name for each in known.open for name in each.conclusion.hosts)
    return {*known.hosts, *told, *(seen[1] for seen in known.examined if seen[1])}


def _unknown_host(host: str, known: Iterable[str]) -> StatusError:
    near = [text.plain(each, 64) for each in text.near(host, known)]
    meant = f": did you mean {' or '.join(near)}?" if near else ""
    file = f" (the document: ./{host})" if Path(host).is_file() else ""
    return StatusError(f"nobody knows a host {text.plain(host, 64)}{file}{meant}")
