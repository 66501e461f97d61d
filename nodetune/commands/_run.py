"""What the commands that look at hosts share: running with progress, and writing the result."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import click

from nodetune import workflow
from nodetune.choice import Choice
from nodetune.model import HostResult
from nodetune.transport import Target
from nodetune.workflow import Reach


def results(facts_path: Path | None, reach: Reach, choice: Choice) -> list[HostResult]:
    """Audit saved facts or hosts. After Ctrl-C: what is known so far."""
    if facts_path:
        return workflow.by_name(workflow.audit_files(facts_path, choice))
    targets = reach.targets()
    return _taken(workflow.audit_hosts(targets, choice, reach), targets)


def probed(reach: Reach, choice: Choice) -> list[HostResult]:
    """The facts of hosts, with progress; in the order of their names."""
    targets = reach.targets()
    return _taken(workflow.probe_hosts(targets, choice, reach), targets)


def with_facts(targets: list[Target], choice: Choice, reach: Reach) -> list[HostResult]:
    """Audit hosts with progress; each result holds the facts that it was judged by."""
    return _taken(workflow.audit_keeping_facts(targets, choice, reach), targets)


def _taken(running: Generator[HostResult, None, None], targets: Sequence[Target]) -> list[HostResult]:
    """Take results as they come, counting on the terminal. Ctrl-C ends the run: what did not come is named as such."""
    kept: list[HostResult] = []
    show = sys.stderr.isatty() and len(targets) > 1
    try:
        for result in running:
            kept.append(result)
            if show:
                _count(kept, len(targets))
    except KeyboardInterrupt:
        click.echo(f"\ninterrupted: {len(kept)} of {len(targets)} hosts are known", err=True)
        known = {result.host for result in kept}
        left = (target.name for target in targets if target.name not in known)
        kept += [HostResult(name, "interrupted", "the run was stopped before this host answered") for name in left]
    finally:
        running.close()
        if show:
            click.echo("\r\033[K", nl=False, err=True)
    return workflow.by_name(kept)


def _count(kept: Sequence[HostResult], total: int) -> None:
    failed = sum(each.state != "ok" for each in kept)
    click.echo(f"\r{len(kept)} of {total} hosts{f', {failed} not reached' if failed else ''} ", nl=False, err=True)


@contextmanager
def output_stream(path: Path | None) -> Iterator[TextIO]:
    """Standard output, or a file that appears only when it is whole."""
    if path is None:
        yield sys.stdout
        return
    if (
        path.exists() and not path.is_file()
    ):  # a device or a pipe (/dev/stdout, /dev/null) is written to, never replaced
        with path.open("w", encoding="utf-8", errors="backslashreplace") as stream:
            yield stream
        return
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("w", encoding="utf-8", errors="backslashreplace") as stream:
            yield stream
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def print_audit(found: Sequence[HostResult], output_format: str, stream: TextIO, by_host: bool, asked: str) -> None:
    """The report in the wanted format."""
    if output_format == "json":
        from nodetune.report import data

        stream.write(data.text(data.audit(found)))
        return
    from nodetune.report import text

    text.Printer(text.console(stream), found, asked).audit(by_host)
