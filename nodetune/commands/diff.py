"""`nodetune diff`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from nodetune import diff, factfile, show
from nodetune.commands import _options, _run
from nodetune.model import HostFacts
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
    Exit code: 0 the same, 1 different, 2 usage.
    """
    found = _compared(_read(before), _read(after), every)
    with _run.output_stream(output) as stream:
        if output_format == "json":
            from nodetune.report import data, diff_data

            stream.write(data.text(diff_data.document(found, str(before), str(after))))
        else:
            from nodetune.report import diff_text

            diff_text.print_diff(stream, found, show.plain(before), show.plain(after))
    return DIFFERENT if found else SAME


def _compared(before: Any, after: Any, every: bool) -> diff.Diff:
    facts = isinstance(before, Facts), isinstance(after, Facts)
    if all(facts):
        return diff.facts(before.hosts, after.hosts, every)
    if any(facts):
        raise click.UsageError("one of the two holds facts, the other an audit: give two of a kind")
    if every:
        raise click.UsageError("--all is about readings among facts: audits have none")
    return diff.audits(before, after)


class Facts:
    """The hosts of a fact file or of a folder of them."""

    def __init__(self, hosts: Mapping[str, HostFacts]) -> None:
        self.hosts = hosts


def _read(path: Path) -> Any:
    """Facts, or an audit document. Raises factfile.BadFacts, diff.BadDocument or OSError."""
    if path.is_dir():
        return Facts({facts.host: facts for facts in map(factfile.load, factfile.files(path))})
    if path.stat().st_size > LARGEST:
        raise diff.BadDocument(f"{path}: larger than {show.size(LARGEST)}")
    data = factfile.parse(path.read_bytes(), str(path))
    if isinstance(data, dict) and data.get("schema") == AUDIT_SCHEMA:
        return diff.checked(data, str(path))
    if isinstance(data, dict) and "hosts" in data and "facts" not in data:
        raise diff.BadDocument(f"{path}: schema {show.plain(data.get('schema'))!r} is not {AUDIT_SCHEMA!r}")
    facts = factfile.load(path)
    return Facts({facts.host: facts})
