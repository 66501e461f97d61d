"""`nodetune diff`."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import click

from nodetune import factfile, show
from nodetune.commands import _options, _run
from nodetune.diff import audits, facts
from nodetune.diff.audits import BadDocument
from nodetune.diff.facts import Side
from nodetune.diff.found import Diff
from nodetune.model import HostFacts
from nodetune.outcome import INCOMPLETE
from nodetune.report import audit_file
from nodetune.report.data import AUDIT_SCHEMA

SAME, DIFFERENT = 0, 1
LARGEST = 2 << 30


@click.command("diff")
@click.argument("before", type=click.Path(path_type=Path, exists=True), metavar="A")
@click.argument("after", type=click.Path(path_type=Path, exists=True), metavar="B")
@click.option("--all", "every", is_flag=True, help="Readings too: temperatures, counters, load, serial numbers.")
@_options.output_format
@_options.output
def command(before: Path, after: Path, every: bool, output_format: str, output: Path | None) -> int:
    """What differs between two files: facts of hosts, or audits.

    \b
    nodetune diff facts/gpu017.json facts/gpu001.json    two hosts, or one host then and now
    nodetune diff monday/ friday/                        folders of fact files, host by host
    nodetune diff monday.json friday.json                audits (nodetune audit --format json): what is new and gone

    A fact that was not read, or not collected, on one side is shown as such and never as a change of its value.
    A file of a folder that cannot be read, or of a host that has another file there, is named, and the others compared.
    Exit code: 0 the same, 1 different, 2 usage, 3 incomplete: hosts could not be compared for such files.
    """
    findings: audit_file.Known = {}
    found = _compared(_read(before, findings), _read(after, findings), every)
    with _run.output_stream(output) as stream:
        if output_format == "json":
            from nodetune.report import data, diff_data

            stream.write(data.text(diff_data.document(found, str(before), str(after))))
        else:
            from nodetune.report import diff_text

            diff_text.print_diff(stream, found, show.plain(before), show.plain(after))
    return INCOMPLETE if found.bad else DIFFERENT if found else SAME


def _compared(before: Any, after: Any, every: bool) -> Diff:
    if isinstance(before, Side) and isinstance(after, Side):
        return facts.compare(before, after, every)
    if isinstance(before, Side) or isinstance(after, Side):
        raise click.UsageError("one of the two holds facts, the other an audit: give two of a kind")
    if every:
        raise click.UsageError("--all is about readings among facts: audits have none")
    return audits.compare(before, after)


def _read(path: Path, findings: audit_file.Known) -> Any:
    """Facts, or an audit document. Raises factfile.BadFacts, BadDocument or OSError."""
    if path.is_dir():
        return _folder(path)
    _check_is_file(path)
    data = audit_file.read(path, findings)
    if data is None and path.stat().st_size > LARGEST:
        raise BadDocument(f"{path}: larger than {show.size(LARGEST)}")
    data = data or factfile.parse(path.read_bytes(), str(path))
    if isinstance(data, dict) and data.get("schema") == AUDIT_SCHEMA:
        return audits.checked(data, str(path))
    if isinstance(data, dict) and "hosts" in data and "facts" not in data:
        raise BadDocument(f"{path}: schema {show.plain(data.get('schema'))!r} is not {AUDIT_SCHEMA!r}")
    host = factfile.load(path)
    return Side({host.host: host})


def _folder(path: Path) -> Side:
    """The hosts of a folder. Raises factfile.BadFacts where it holds no fact file at all."""
    hosts: dict[str, HostFacts] = {}
    files: dict[str, list[str]] = {}
    bad: dict[str, str] = {}
    for file in factfile.files(path):
        try:
            found = factfile.load(file, regular=True)
        except factfile.BadFacts as problem:
            bad[show.plain(file.stem)] = str(problem)
            continue
        hosts[found.host] = found
        files.setdefault(found.host, []).append(file.name)
    for host, names in files.items():
        if len(names) > 1:  # which of them is meant only a person knows
            bad[host] = f"{path}: {', '.join(names)} each hold its facts: take all but one away"
    return Side({host: found for host, found in hosts.items() if host not in bad}, bad)


def _check_is_file(path: Path) -> None:
    """Raises factfile.BadFacts for what may never end, as a pipe."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise factfile.BadFacts(f"{path}: not a file")
