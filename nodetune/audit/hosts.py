"""Audit hosts: probe them, judge the facts, and yield each host as it completes."""

from collections.abc import Generator, Iterator, Mapping
from dataclasses import replace

from nodetune.api.model import HostFacts, HostResult
from nodetune.audit import auditor, processes
from nodetune.audit.selection import Selection
from nodetune.facts.cache import FactCache
from nodetune.foundation import parallel
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.hosts.target import Target, UnreachableError
from nodetune.remote import payload, pool

BUSY_SHARE = 0.75
"""The share of a host's time that its probe may take if the host is busy. The rest is for the login and the answer."""


def collect(
    targets: list[Target], names: set[str], connection: ConnectionOptions
) -> Iterator[tuple[Target, HostFacts | UnreachableError, float]]:
    """Probe hosts and yield each as it completes."""
    asked = payload.families(names)
    if connection.transport == "slurm":
        from nodetune.remote.slurm import probe as slurm_probe

        return slurm_probe.collect(targets, *_script(asked, connection), connection.options, asked)
    return pool.collect(
        targets,
        lambda _target: _script(asked, connection),
        connection.options,
        connection.forks,
        connection.transport,
        asked=asked,
    )


def _script(asked: Mapping[str, list[str]], connection: ConnectionOptions) -> tuple[bytes, str]:
    given = connection.options.seconds
    if connection.transport == "kubernetes":
        return payload.script_in_pod(asked, pool.probe_seconds(given), given * BUSY_SHARE, given)
    return payload.script(asked, pool.probe_seconds(given), given * BUSY_SHARE)


def probe_hosts(
    targets: list[Target], selection: Selection, connection: ConnectionOptions, cache: FactCache | None = None
) -> Generator[HostResult, None, None]:
    """Yield the unjudged facts of hosts, each as it completes. Hosts with cached facts are not probed."""
    names, left = selection.facts(), []
    for target in targets:
        known = cache.known(target, names) if cache else None
        if known:
            yield known
        else:
            left.append(target)
    for target, facts, seconds in collect(left, names, connection) if left else ():
        if isinstance(facts, UnreachableError):
            yield HostResult(target.name, facts.state, facts.message, seconds=seconds)
            continue
        if cache:
            cache.keep(target, facts, names)
        yield HostResult(target.name, "ok", facts=facts, seconds=seconds)


def audit_hosts(
    targets: list[Target],
    selection: Selection,
    connection: ConnectionOptions,
    cache: FactCache | None = None,
    look_of: auditor.LookOf | None = None,
) -> Generator[HostResult, None, None]:
    """Probe and judge hosts; for many hosts in several processes. The results have no facts."""
    auditor.expect(targets, selection)
    by_name = {target.name: target for target in targets}
    count = 1 if connection.transport == "slurm" else parallel.processes(len(targets))  # one srun is for all hosts
    share = replace(connection, forks=max(1, connection.forks // count))
    if len(targets) > 1:
        _script(payload.families(selection.facts()), connection)  # packed here, so that no process and no thread has to
    return processes.judged(
        auditor.Auditor(selection, look_of=look_of),
        by_name,
        lambda part: ((each.host, each) for each in probe_hosts(part, selection, share, cache)),
        count,
    )


def audit_keeping_facts(
    targets: list[Target], selection: Selection, connection: ConnectionOptions
) -> Generator[HostResult, None, None]:
    """Probe and judge hosts in this process. The results have their facts."""
    auditor.expect(targets, selection)
    judge = auditor.Auditor(selection)
    for probed in probe_hosts(targets, selection, connection):
        result = judge.audit(probed)
        yield replace(result, facts=probed.facts) if result.state == "ok" else result
