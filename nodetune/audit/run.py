"""Audit hosts or saved facts, and compare the hosts with each other."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from nodetune.api.model import HostResult
from nodetune.audit import auditor
from nodetune.audit.request import CACHE_MINUTES, AuditRequest
from nodetune.audit.selection import Selection, comparing
from nodetune.facts.saved import BUNDLED, Rules, Saved
from nodetune.foundation import stage_output, text
from nodetune.foundation.stage_output import Show
from nodetune.hosts.connection_options import ConnectionOptions

if TYPE_CHECKING:
    from nodetune.audit.remembered import Remembered
    from nodetune.hosts.target import Target

# inventories, SSH and Slurm are imported where hosts are reached: saved facts need none of them


def compared(request: AuditRequest) -> Selection:
    """Return the selection of a request with what it compares between hosts."""
    if request.no_compare:
        return request.selection
    return comparing(request.selection, request.cohort, request.reference)


def run(request: AuditRequest, selection: Selection, show: Show) -> list[HostResult]:
    """Return the results by host name. `selection`: see `compared`. After Ctrl-C: what is known so far."""
    path = request.facts_path
    if not request.history or (path and path.parent == BUNDLED):
        return auditor.compared(_found(request, selection, show), selection)
    from nodetune.audit.remembered import Remembered  # most audits have no history

    with Remembered(request.history, show) as kept:
        return kept.told(auditor.compared(_found(request, selection, show, kept), selection))


def _found(request: AuditRequest, selection: Selection, show: Show, kept: Remembered | None = None) -> list[HostResult]:
    path = request.facts_path
    return _saved(path, request, selection, show, kept) if path else _hosts(request, selection, show, kept)


def _saved(
    path: Path, request: AuditRequest, selection: Selection, show: Show, kept: Remembered | None
) -> list[HostResult]:
    connection = request.connection
    rules = Rules(request.max_age, named=connection.inventory is not None)
    saved = Saved.selected(path, connection)
    look_of = kept.look_of if kept else None
    every = auditor.audit_files(saved, selection, rules, look_of)
    judged = (kept.taken(each) if kept else each for each in every if connection.wants(each.host))
    if not saved.is_folder:
        return auditor.by_name(judged)
    return auditor.by_name(stage_output.counted(show, "audit", judged, sum(map(len, saved.files()))))


def _hosts(request: AuditRequest, selection: Selection, show: Show, kept: Remembered | None) -> list[HostResult]:
    from nodetune.audit import hosts
    from nodetune.facts.cache import FactCache
    from nodetune.remote.selected_hosts import selected_hosts

    connection, cache = request.connection, None
    if request.cache:
        request.cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        oldest = request.max_age or CACHE_MINUTES * 60
        via = connection.transport if connection.transport in ("slurm", "kubernetes") else "ssh"
        cache = FactCache(request.cache, oldest, via)
    targets = selected_hosts(connection, show.detail)
    look_of = kept.look_of if kept else None
    found = _taken("audit", hosts.audit_hosts(targets, selection, connection, cache, look_of), targets, show, kept)
    _tell_cached([each for each in found if each.state == "ok" and each.message], len(found), show)
    return found


def probed(
    connection: ConnectionOptions, selection: Selection, each: Callable[[HostResult], HostResult], show: Show
) -> list[HostResult]:
    """Return what `each` makes of the facts of every host, in the order of their names."""
    from nodetune.audit import hosts
    from nodetune.remote.selected_hosts import selected_hosts

    targets = selected_hosts(connection, show.detail)
    with closing(hosts.probe_hosts(targets, selection, connection)) as running:
        return _taken("facts", (each(result) for result in running), targets, show)


def selected_with_facts(
    selection: Selection, connection: ConnectionOptions, show: Show
) -> tuple[list[Target], list[HostResult]]:
    """Return the hosts that the options select, and their audit with facts. Raise InventoryError."""
    from nodetune.remote.selected_hosts import selected_hosts

    targets = selected_hosts(connection, show.detail)
    return targets, with_facts(targets, selection, connection, show)


def with_facts(
    targets: list[Target], selection: Selection, connection: ConnectionOptions, show: Show
) -> list[HostResult]:
    """Audit hosts; each result holds the facts that it was judged by."""
    from nodetune.audit import hosts

    return _taken("audit", hosts.audit_keeping_facts(targets, selection, connection), targets, show)


def saved_with_facts(path: Path, selection: Selection, connection: ConnectionOptions) -> list[HostResult]:
    """Judge saved facts; each result holds them."""
    known = saved_facts(path, selection, connection)
    return judged_with_facts(known, selection)


def saved_facts(path: Path, selection: Selection, connection: ConnectionOptions) -> list[HostResult]:
    """Read saved facts, and announce their hosts to the site files. Raise FileError for a selection that names nothing."""
    selection.facts()  # it must not read as a plan with nothing to do
    saved = Saved.selected(path, connection)
    auditor.expect_saved(saved, selection)
    return [each for each in auditor.saved_facts(saved) if connection.wants(each.host)]


def judged_with_facts(known: Sequence[HostResult], selection: Selection) -> list[HostResult]:
    """Judge facts; each result holds them."""
    judge = auditor.Auditor(selection)
    return [_with_facts(judge.judged(each)[0], each) for each in known]


def _with_facts(judged: HostResult, saved: HostResult) -> HostResult:
    return replace(judged, facts=saved.facts) if judged.state == "ok" else judged


def _taken(
    phase: str,
    running: Generator[HostResult, None, None],
    targets: Sequence[Target],
    show: Show,
    remembered: Remembered | None = None,
) -> list[HostResult]:
    """Take results as they come. Ctrl-C ends the run: hosts without a result are named as such."""
    kept: list[HostResult] = []
    try:
        with closing(running):
            for result in stage_output.counted(show, phase, running, len(targets)):
                kept.append(remembered.taken(result) if remembered else result)  # noqa: PERF401  (interrupted, it keeps what came before)
    except KeyboardInterrupt:
        show.warn(f"\ninterrupted: {len(kept)} of {text.count(len(targets), 'host')} answered")
        known = {result.host for result in kept}
        left = (target.name for target in targets if target.name not in known)
        kept += [HostResult(name, "interrupted", "the run was stopped before this host answered") for name in left]
    return auditor.by_name(kept)


def _tell_cached(cached: Sequence[HostResult], of: int, show: Show) -> None:
    """Say that some hosts were not probed again, so that recent fixes do not show."""
    if cached:
        who = f"{cached[0].host} was" if of == 1 else f"{len(cached)} of {of} hosts were"
        show.warn(f"{who} not probed again: {cached[0].message} (from --cache; limit the age with --max-age)")
