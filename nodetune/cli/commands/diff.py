"""`nodetune diff`."""

import stat
from pathlib import Path
from typing import Any

import click

from nodetune.api.model import HostFacts
from nodetune.audit import compare as audits
from nodetune.audit import document_reader as audit_reader
from nodetune.audit.document import AUDIT_SCHEMA
from nodetune.cli import options, verbosity
from nodetune.facts import compare as facts
from nodetune.facts import document
from nodetune.facts.compare import Side
from nodetune.facts.diff import Diff
from nodetune.foundation import file_io, text
from nodetune.foundation.exit_codes import FINDINGS, INCOMPLETE, OK
from nodetune.foundation.json_document import DocumentError

LARGEST = 2 << 30
VERIFIED = "a verify result"


@click.command("diff")
@click.argument("before", **options.SAVED, metavar="A")
@click.argument("after", **options.SAVED, metavar="B")
@click.option(
    "--all", "every", is_flag=True, help="Also compare readings: temperatures, counters, load, serial numbers."
)
@options.output_format
@options.output
def command(before: Path, after: Path, every: bool, output_format: str, output: Path | None) -> int:
    """Compare two files: facts, audits or verify results.

    \b
    nodetune diff facts/gpu017.json facts/gpu001.json    facts of two hosts, or of one host at two times
    nodetune diff facts/gpu017.json h100-x2              facts of a host and of a bundled machine
    nodetune diff monday/ friday/                        folders of fact files, host by host
    nodetune diff monday.json friday.json                audits (nodetune audit --format json): new and fixed findings
    nodetune diff before.json after.json                 verify results (nodetune verify --format json)

    A fact that was not read or not collected on one side is reported as such, not as a change.
    Hosts that an audit did not reach, unreadable files in a folder, and hosts with several files are reported; the
    other hosts are compared. Exit code: 0 identical, 1 different, 2 usage, 3 some hosts could not be compared. For
    verify results: 0 nothing became worse, 3 some figures were not measured again, or none could be judged, 5
    something became worse.
    """
    findings: audit_reader.Known = {}
    one, other = _read(before, findings), _read(after, findings)
    if _kind(one) == _kind(other) == VERIFIED:
        from nodetune.cli.commands import _verify

        _refuse_all(every)
        return _verify.report_changes(one, other, output_format, output)
    found = _compared(one, other, every)
    from nodetune.report.text import diff

    with options.writing(output) as stream:
        if output_format == "json":
            from nodetune.facts import diff_document
            from nodetune.foundation import json_document

            stream.write(json_document.text(diff_document.document(found, str(before), str(after))))
        else:
            diff.print_diff(stream, found, text.plain(before), text.plain(after))
        if output:
            verbosity.note(diff.totals(found))
    return INCOMPLETE if found.states else FINDINGS if found else OK


def _compared(before: Any, after: Any, every: bool) -> Diff:
    if isinstance(before, Side) and isinstance(after, Side):
        return facts.compare(before, after, every)
    if _kind(before) != _kind(after):
        raise click.UsageError(f"cannot compare {_kind(before)} with {_kind(after)}: give two files of the same kind")
    _refuse_all(every)
    return audits.compare(before, after)


def _kind(data: Any) -> str:
    return "facts" if isinstance(data, Side) else "an audit" if isinstance(data, dict) else VERIFIED


def _refuse_all(every: bool) -> None:
    if every:
        raise click.UsageError("--all is for facts only")


def _read(path: Path, findings: audit_reader.Known) -> Any:
    """Read facts, an audit document or a verify result.

    Raise document.FactsError, DocumentError or OSError.
    """
    if path.is_dir():
        return _folder(path)
    if not stat.S_ISREG(path.stat().st_mode):  # a pipe or device might never end
        raise document.FactsError(f"{path}: not a file")
    data = audit_reader.read(path, findings)
    data = data or document.parse(file_io.read(path, LARGEST), str(path))
    if isinstance(data, dict) and data.get("schema") == AUDIT_SCHEMA:
        return audits.checked(data, str(path))
    if isinstance(data, dict) and "hosts" in data and "facts" not in data:
        return _verify_result(path, data)
    host = document.load(path)
    return Side({host.host: host})


def _verify_result(path: Path, data: dict[str, Any]) -> Any:
    """Return the result. Raise DocumentError for any other document with hosts."""
    from nodetune.verify import document as verify

    if not verify.is_result(data):
        known = f"{AUDIT_SCHEMA!r} or {verify.VERIFY_SCHEMA!r}"
        raise DocumentError(f"{path}: schema {text.plain(data.get('schema'))!r} is not {known}")
    return verify.result_of(data)


def _folder(path: Path) -> Side:
    """Read the hosts in a folder. Raise document.FactsError if it contains no fact file."""
    hosts: dict[str, HostFacts] = {}
    files: dict[str, list[str]] = {}
    bad: dict[str, str] = {}
    for file in document.files(path):
        try:
            found = document.load(file, regular=True)
        except document.FactsError as problem:
            bad[text.plain(file.stem)] = str(problem)
            continue
        hosts[found.host] = found
        files.setdefault(found.host, []).append(file.name)
    for host, names in files.items():
        if len(names) > 1:
            bad[host] = f"{path}: {', '.join(names)} all contain its facts: remove all but one"
    return Side({host: found for host, found in hosts.items() if host not in bad}, bad)
