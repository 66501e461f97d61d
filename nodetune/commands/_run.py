"""What the commands that look at hosts share: running with progress, and writing the result."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TextIO

import click

from nodetune import pull, whole, workflow
from nodetune.choice import Choice
from nodetune.model import HostResult
from nodetune.saved import Saved
from nodetune.transport import Target
from nodetune.workflow import Reach


def results(facts_path: Path | None, reach: Reach, choice: Choice, max_age: int | None = None) -> list[HostResult]:
    """Audit saved facts (`max_age`: seconds) or hosts. After Ctrl-C: what is known so far."""
    if facts_path:
        rules = pull.Rules(max_age, named=reach.inventory is not None)
        return workflow.by_name(workflow.audit_files(Saved(facts_path, reach.inventory, reach.limit), choice, rules))
    targets = reach.targets()
    found = _taken(workflow.audit_hosts(targets, choice, reach), targets)
    _tell_kept([each for each in found if each.state == "ok" and each.message], len(found))
    return found


def probed(reach: Reach, choice: Choice, each: Callable[[HostResult], HostResult]) -> list[HostResult]:
    """What `each` makes of the facts of every host as it answers, with progress; in the order of their names."""
    targets = reach.targets()
    with closing(workflow.probe_hosts(targets, choice, reach)) as running:
        return _taken((each(result) for result in running), targets)


def with_facts(targets: list[Target], choice: Choice, reach: Reach) -> list[HostResult]:
    """Audit hosts with progress; each result holds the facts that it was judged by."""
    return _taken(workflow.audit_keeping_facts(targets, choice, reach), targets)


def _taken(running: Generator[HostResult, None, None], targets: Sequence[Target]) -> list[HostResult]:
    """Take results as they come, counting on the terminal. Ctrl-C ends the run: what did not come is named as such."""
    kept: list[HostResult] = []
    failed = 0
    show = sys.stderr.isatty() and len(targets) > 1
    try:
        for result in running:
            kept.append(result)
            failed += result.state != "ok"
            if show:
                _count(len(kept), failed, len(targets))
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


def _tell_kept(kept: Sequence[HostResult], of: int) -> None:
    """That some hosts were not asked: who has mended one since would wonder."""
    if kept:
        who = f"{kept[0].host} was" if of == 1 else f"{len(kept)} of {of} hosts were"
        click.echo(f"{who} not asked again: {kept[0].message} (--keep; younger ones only: --max-age)", err=True)


def _count(known: int, failed: int, total: int) -> None:
    click.echo(f"\r{known} of {total} hosts{f', {failed} not reached' if failed else ''} ", nl=False, err=True)


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
    with whole.stream(path) as stream:
        yield stream


def print_audit(found: Sequence[HostResult], output_format: str, stream: TextIO, by_host: bool, asked: str) -> None:
    """The report in the wanted format."""
    if output_format == "json":
        from nodetune.report import data

        data.write_audit(found, stream)
        return
    from nodetune.report import text

    text.Printer(text.console(stream), found, asked).audit(by_host)
