"""The stages of a provision, one after the other, over all hosts together; a host that fails goes no further."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from nodetune.foundation.exit_codes import END_STATE_MISSED
from nodetune.foundation.json_document import DocumentError
from nodetune.provision import STAGES, baseline
from nodetune.provision.record import LEFT_OUT, STOPPED, Record, Results, StageResult, failed
from nodetune.provision.steps import Steps


def provision(work: Steps, record: Record) -> int:
    """Run the stages and return the exit code. The record is complete whatever happens."""
    try:
        for stage in STAGES:
            hosts = record.alive
            if not work.request.runs(stage):
                record.note(stage, dict.fromkeys(hosts, StageResult(LEFT_OUT, "not selected")))
                continue
            if stage == "packages" and work.request.drain:
                hosts = _drained(work, record, hosts)
            step(record, stage, hosts, getattr(work, stage), work)
            if work.stopped:
                break
        work.give_back(record.alive)
    finally:
        record.close(work.stopped or "the run ended earlier")
    return record.code


def step(record: Record, stage: str, hosts: Sequence[str], do: Callable[[Sequence[str]], Results], work: Steps) -> None:
    """Run one stage on some hosts. Ctrl-C ends it: the state of unfinished hosts is unknown."""
    if not hosts:
        return
    work.begins(stage, hosts)
    began = time.monotonic()
    try:
        found = do(hosts)
    except KeyboardInterrupt:
        work.operations.stopped = work.stopped or STOPPED
        found = {}
    except (DocumentError, OSError) as problem:
        # of this computer, not of the hosts: a file that is gone, a disk that is full
        found = dict.fromkeys(hosts, failed(baseline.told(problem)))
    seconds = time.monotonic() - began
    came = {host: found.get(host) or failed(work.stopped or "no answer", END_STATE_MISSED) for host in hosts}
    record.note(stage, {host: replace(each, seconds=seconds) for host, each in came.items()})


def _drained(work: Steps, record: Record, hosts: Sequence[str]) -> list[str]:
    """Return the hosts that are drained; the others failed before any package changed."""
    came = work.drain(hosts)
    record.note("packages", {host: each for host, each in came.items() if not each.ok})
    return [host for host in hosts if came[host].ok]
