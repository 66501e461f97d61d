"""Watch hosts, or read what was saved of an earlier watch."""

import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from nodetune.api.model import HostFacts, HostResult
from nodetune.facts import document
from nodetune.facts.saved import Rules, Saved
from nodetune.foundation import file_io, stage_output, text
from nodetune.foundation.exit_codes import FINDINGS, INCOMPLETE, OK
from nodetune.foundation.stage_output import Show
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.jobs.watch import hosts
from nodetune.jobs.watch.conclude import concluded
from nodetune.jobs.watch.model import WatchedHost
from nodetune.jobs.watch.request import WatchRequest

# inventories and connections are imported where hosts are reached: saved facts need none of them

BEFORE_AND_AFTER = 20.0
"""Seconds that the reader has in addition to the window."""


def run(request: WatchRequest, show: Show) -> list[WatchedHost]:
    """Return the judged GPUs of each host, by name. Raise InventoryError, FactsError, OSError."""
    results = _saved(request) if request.facts_path else _probed(request, show)
    watched = hosts.with_late([hosts.diagnose_host(result) for result in results])
    if request.history:
        from nodetune.history import keeping  # most runs have no history

        taken = {result.host: result.facts.about.get("time") for result in results if result.facts}
        figures = [(host.host, taken.get(host.host), hosts.figures(host)) for host in watched]
        keeping.keep(request.history, show, measured=figures, concluded=concluded(watched, taken, int(time.time())))
    return sorted(watched, key=lambda host: host.host)


def exit_code(watched: Iterable[WatchedHost]) -> int:
    """Return 3 if a host or GPU could not be judged or there is no GPU, 1 if a job does not use its GPU well, else 0."""
    watched_hosts = list(watched)
    if not all(host.is_complete for host in watched_hosts) or not any(host.gpus for host in watched_hosts):
        return INCOMPLETE
    return FINDINGS if any(gpu.diagnosis.wasted for host in watched_hosts for gpu in host.gpus) else OK


def _saved(request: WatchRequest) -> list[HostResult]:
    assert request.facts_path is not None  # noqa: S101  (for the type checker)
    saved = Saved.selected(request.facts_path, request.connection)
    if not saved.is_folder:
        return [HostResult((facts := saved.facts()).host, "ok", facts=facts)]
    files, missing = saved.files()
    rules = Rules()
    results = [rules.read(path, host) for host, path in files.items()]
    return [*results, *(HostResult(host, "missing", f"{saved.path} has no file for it") for host in missing)]


def _probed(request: WatchRequest, show: Show) -> list[HostResult]:
    from nodetune.audit import hosts as probing
    from nodetune.hosts.target import UnreachableError
    from nodetune.remote.selected_hosts import selected_hosts

    connection = _with_time(request.connection, request.seconds)
    targets = selected_hosts(connection, show.detail)
    save = _saver(request.save)
    collected: list[HostResult] = []

    def results() -> Iterable[HostResult]:
        with closing(probing.collect(targets, hosts.names(request.seconds), connection)) as running:  # type: ignore[type-var]
            for target, facts, seconds in running:
                if isinstance(facts, UnreachableError):
                    yield HostResult(target.name, facts.state, facts.message, seconds=seconds)
                else:
                    save(facts)
                    yield HostResult(target.name, "ok", facts=facts, seconds=seconds)

    try:
        collected.extend(stage_output.counted(show, "watch", results(), len(targets)))
    except KeyboardInterrupt:
        show.warn(f"\ninterrupted: {len(collected)} of {text.count(len(targets), 'host')} answered")
    known = {result.host for result in collected}
    missing = [target.name for target in targets if target.name not in known]
    return [
        *collected,
        *(HostResult(name, "interrupted", "the run was stopped before it answered") for name in missing),
    ]


def _with_time(connection: ConnectionOptions, seconds: int) -> ConnectionOptions:
    """Return the options with a deadline of a host that has room for the window: its reader gets half of it."""
    needed = 2 * (seconds + BEFORE_AND_AFTER) * 4 / 3
    longest = max(connection.options.seconds, needed)
    return replace(connection, options=replace(connection.options, seconds=longest))


def _saver(folder: Path | None) -> Callable[[HostFacts], None]:
    """Return what saves the facts of a host."""
    if folder is None:
        return lambda _facts: None
    folder.mkdir(parents=True, exist_ok=True)
    names: set[str] = set()
    return lambda facts: file_io.write(
        folder / document.file_name(facts.host, names), document.dump(facts), file_io.OWN
    )
