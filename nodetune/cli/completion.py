"""Completion of option values and arguments. Errors and long waits give no completion."""

import io
import re
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Any

import click
from click.shell_completion import CompletionItem

from nodetune.cli import settings

MAX_SECONDS = 10.0
"""Maximum seconds: an inventory may be a program that queries a cloud."""

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _quietly(known: Callable[[click.Context], Iterable[str]], files: bool = False) -> Complete:
    """Complete with matching words; with `files`, with file names if no word matches."""

    def complete(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
        words: list[str] = []
        with suppress(Exception, SystemExit), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()), _limit():
            words = [word for word in known(context) if word.startswith(begun)]
        return [CompletionItem(word) for word in words] or ([CompletionItem(begun, type="file")] if files else [])

    return complete


@contextmanager
def _limit() -> Iterator[None]:
    def late(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, MAX_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _ids(_context: click.Context) -> list[str]:
    from nodetune import checks
    from nodetune.audit import explain

    return [*checks.catalogue(), *(each.id for each in explain.comparisons())]


def _ids_and_areas(context: click.Context) -> list[str]:
    from nodetune.audit import explain

    ids = _ids(context)
    return [*sorted(set(map(explain.area, ids))), *ids]


def _bundled(pattern: str) -> list[str]:
    """Return the names of files that come with nodetune."""
    from nodetune.foundation import paths

    return sorted(path.stem for path in paths.PACKAGE.glob(pattern) if path.stem != "base")


def _inventories(_context: click.Context) -> list[str]:
    from nodetune.hosts.inventory import selection

    return selection.known()


def _runs(context: click.Context) -> list[str]:
    from nodetune.remediation.runs import record

    above = context.parent.params if context.parent else {}
    found = [run.id for run in record.listing(context.params.get("runs_folder") or above.get("runs_folder"))]
    return ["last", *found] if found else []


def limit(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Complete the last part of a pattern (gpu001,gp…) with hosts and groups of the inventory."""
    before = re.match(r".*[,:&!]|", begun)
    start = before[0] if before else ""
    return [CompletionItem(f"{start}{item.value}") for item in _names(context, parameter, begun.removeprefix(start))]


def _hosts_and_groups(context: click.Context) -> list[str]:
    from nodetune.hosts.inventory import selection

    given = context.params.get("inventory")
    found = selection.targets(given, named_by=settings.named_by_project("inventory")) if given else []
    groups = {group for target in found for group in target.groups}
    return [*sorted(groups), *(target.name for target in found if target.name not in groups)]


_names = _quietly(_hosts_and_groups)
check_id = _quietly(_ids)
selected = _quietly(_ids_and_areas)
profiles = _quietly(lambda _: _bundled("config/profiles/*.yml"))
saved_facts = _quietly(lambda _: _bundled("facts/recorded/*.json"), files=True)
inventory = _quietly(_inventories, files=True)
run = _quietly(_runs)
