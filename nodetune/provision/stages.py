"""The stages of a provision, one after the other, over all hosts together; a host that fails goes no further."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from nodetune.outcome import NOT_REACHED
from nodetune.provision import STAGES, baseline
from nodetune.provision.record import LEFT_OUT, STOPPED, Came, Clock, Record, Results, failed
from nodetune.provision.work import Work
from nodetune.verdict.baseline import BadBaseline

Say = Callable[[str, Sequence[str]], None]
"""Hears that a stage begins, and on which hosts."""


@dataclass(frozen=True)
class Chosen:
    """Which stages are gone through: from one on, or only one. `look` always is: all others build on it."""

    first: str = ""
    only: str = ""

    def __contains__(self, stage: object) -> bool:
        if stage == "look" or not (self.first or self.only):
            return True
        return stage == self.only if self.only else STAGES.index(str(stage)) >= STAGES.index(self.first)


def provision(work: Work, record: Record, chosen: Chosen, say: Say, drain: bool = False) -> int:
    """Go through the stages. Returns the exit code; the record is whole whatever happens."""
    try:
        for stage in STAGES:
            hosts = record.alive
            if stage not in chosen:
                record.note(stage, dict.fromkeys(hosts, Came(LEFT_OUT, "not asked for")))
                continue
            if stage == "packages" and drain:
                hosts = _drained(work, record, hosts)
            step(record, stage, hosts, getattr(work, stage), work, say)
            if work.stopped:
                break
        work.give_back(record.alive)
    finally:
        record.close(work.stopped or "the run ended before")
    return record.code


def step(
    record: Record, stage: str, hosts: Sequence[str], do: Callable[[Sequence[str]], Results], work: Work, say: Say
) -> None:
    """One stage on some hosts. Ctrl-C ends it: of hosts that were not done nobody knows how far they came."""
    if not hosts:
        return
    say(stage, hosts)
    clock = Clock()
    try:
        found = do(hosts)
    except KeyboardInterrupt:
        work.field.stopped = work.stopped or STOPPED
        found = {}
    except (
        BadBaseline,
        OSError,
    ) as problem:  # of this computer, not of the hosts: a file that is gone, a disk that is full
        found = dict.fromkeys(hosts, failed(baseline.told(problem)))
    seconds = clock.seconds()
    came = {host: found.get(host) or failed(work.stopped or "no answer", NOT_REACHED) for host in hosts}
    record.note(stage, {host: replace(each, seconds=seconds) for host, each in came.items()})


def _drained(work: Work, record: Record, hosts: Sequence[str]) -> list[str]:
    """Hosts that a scheduler has let go of; the others failed before a package was touched."""
    came = work.drain(hosts)
    record.note("packages", {host: each for host, each in came.items() if not each.ok})
    return [host for host in hosts if came[host].ok]
