"""After a job: what it left on its GPUs, and what went wrong with them while it ran.

The checks that gate are judged once more, along with processes that are still there and counters that grew since
the prolog's reading (kernel log, ECC, NVLink). Everything is reported; the node is drained only for checks that gate,
and only in the mode `enforce`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nodetune.guard.node import cache, records
from nodetune.guard.node.invocation import HOLD, INCONCLUSIVE, RUN, say

if TYPE_CHECKING:
    from nodetune.api.device import Device
    from nodetune.api.model import Check, Finding
    from nodetune.guard.node.decide import Decision
    from nodetune.guard.node.invocation import Arguments, Job
    from nodetune.guard.node.policy import Policy

SNAPSHOT = ("gpu.ecc_uncorrected_volatile", "gpu.nvlink_errors", "xid.events", "xid.fallen_off_bus")
"""Facts that the prolog should also read (the policy's `snapshot`): they grow while a job runs."""
DURING = ("gpu-ecc-uncorrected", "gpu-xid-hardware", "nvlink-errors")
IN_USE = "gpu-in-use"
READ_SHARE, ENDING_SHARE, ENDING_SECONDS = 0.7, 0.85, 1.5
"""Fractions of the time for reading and for processes to end, and the limit in seconds for the latter."""

SHARED_SHARE = 0.1
"""Of the whole time: what asking the shared folder may take."""


def run(asked: Arguments, job: Job) -> int:
    """Run the epilog and return the exit code. Raise InconclusiveError or OSError."""
    cache.clear(asked.run, cache.names(job))
    if not job.has_gpus:
        return RUN
    from nodetune.guard.node import policy

    chosen = policy.load(asked.policy)
    records.prepare(asked.run)
    before = _before(asked.run, job)
    gating = [check for check in chosen.checks if check["about"] == "gpu"]
    known = {check["id"] for check in gating}
    decision, killed = _judged(asked, job, chosen, [*gating, *watched(known, before)], before)
    blamed = [each for each in decision.blamed if each.check in known]
    why_not, code = _act(asked, job, chosen, blamed, decision.devices) if blamed else ("", RUN)
    return _tell(asked, job, decision, {"killed": killed, "compared": bool(before), "why_not": why_not}, code)


def _before(run: str, job: Job) -> dict[str, Any]:
    """Return the facts that the prolog saved, and delete them: nothing else needs them."""
    path = os.path.join(run, records.SNAPSHOTS, f"{job.id}.json")
    try:
        found = json.loads(records.read(path))["facts"]
        os.unlink(path)
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def watched(known: Container[str], before: Container[str]) -> list[dict[str, Any]]:
    """Return the checks that are reported and do not gate; counters only if they were also read before the job."""
    found = [_shipped(name) for name in (IN_USE, *DURING) if name not in known]
    return [check for check in found if all(name in before for name in check["facts"] if name in SNAPSHOT)]


def _shipped(name: str) -> dict[str, Any]:
    """Return a check of this version that the policy does not gate on."""
    from importlib import import_module

    from nodetune.guard.node import gating_checks

    check: Check = import_module(f"nodetune.checks.gpu.{name.replace('-', '_')}").CHECK
    return gating_checks.entry(replace(check, id=name, area="gpu", doc=name))


def _judged(
    asked: Arguments, job: Job, chosen: Policy, checks: list[dict[str, Any]], before: Mapping[str, Any]
) -> tuple[Decision, list[int]]:
    """Return the decision over new faults, and the processes that were killed. Raise InconclusiveError."""
    from nodetune.guard.node import read

    left = asked.started + chosen.total * READ_SHARE - time.monotonic()
    names = {name for check in checks for name in check["facts"]}
    started = read.start(names, left, chosen.step, chosen.stuck, asked)
    # while the readers are at work
    from nodetune.guard.node import decide, gating_checks, gpu_index, hardware, leftover_processes

    listed = gpu_index.listed(job.conf, job.node)
    reading = started.finish()
    until, user = time.monotonic() + ENDING_SECONDS, os.environ.get("SLURM_JOB_UID", "")
    until = min(until, asked.started + chosen.total * ENDING_SHARE)
    uid = int(user) if user.isascii() and user.isdigit() else None
    cards = decide.Cards(gating_checks.host_facts(reading.facts, reading.failed), job, listed)
    left_behind, processes = leftover_processes.of_job(reading.facts, job, uid, cards.of_job, until)
    kills = chosen.kill_leftovers and chosen.mode == "enforce"
    killed = [pid for pid in left_behind if kills and leftover_processes.end(pid, job, uid)]
    facts = {name: since(before[name], now) if name in before else now for name, now in reading.facts.items()}
    reading.facts = facts
    host = hardware.host_facts(asked, chosen, reading)
    of_job = gating_checks.host_facts({**facts, **processes}, reading.failed)
    views = {**gating_checks.for_a_drain(facts, reading.failed), IN_USE: of_job}
    found = gating_checks.findings(checks, host, reading.failed, views)  # other jobs' programs are no leftovers
    return decide.decide(found, checks, host, job, chosen.waived(), listed), killed


def _act(
    asked: Arguments, job: Job, chosen: Policy, blamed: Sequence[Finding], of_host: Sequence[Device]
) -> tuple[str, int]:
    """Take the node out of service. Return why not, and the exit code: with 1 and a record Slurm drains the node."""
    from nodetune.guard.node import drain, failure_limit, log, scontrol

    why_not = failure_limit.forbidden(chosen, job.node, chosen.total * SHARED_SHARE, asked.run)
    if why_not:
        return why_not, RUN
    record = log.record(asked.nonce, job, chosen, blamed, of_host)
    if chosen.act == "drain":
        return drain.drain(scontrol.Slurm(chosen.scontrol, asked.started + chosen.total), asked.run, record), RUN
    records.keep(asked.run, job.id, json.dumps(record))
    return "", HOLD


def _tell(asked: Arguments, job: Job, decision: Decision, more: Mapping[str, Any], code: int) -> int:
    from nodetune.guard.node import log

    said = {name: [log.as_data(each) for each in getattr(decision, name)] for name in ("peers", "unknown", "waived")}
    data = {"program": "epilog", "verdict": decision.verdict, "job": job.id, "node": job.node, "gpus": list(job.gpus)}
    found = [log.as_data(each) for each in decision.blamed]
    log.log({**data, **more, "reason": decision.reason, "findings": found, **said})
    reason = decision.reason if decision.verdict == "fail" else ""
    records.heartbeat(asked.run, f"epilog: {decision.verdict}", job.id, reason)
    kept = f"; the node stays in service: {more['why_not']}" if more["why_not"] else ""
    if decision.verdict == "inconclusive":
        say(f"nodetune: inconclusive: {decision.reason}")
        return INCONCLUSIVE
    say(f"{decision.reason or 'nodetune: pass'}{kept}")
    return code


# What is new


def since(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Return by how much a fact has grown since the first reading."""
    if "each" in now:
        each = before.get("each", {})
        return {"each": {subject: since(each.get(subject, {}), one) for subject, one in now["each"].items()}}
    if "value" not in now:
        return dict(now)
    if "value" not in before:
        return {"unread": "not read before the job"}
    return {"value": _grown(before["value"], now["value"])}


def _grown(before: Any, now: Any) -> Any:
    """Return the difference of numbers, or the new entries of lists. A smaller number was reset and counts in full."""
    if isinstance(now, dict):
        old = before if isinstance(before, dict) else {}
        parts = {key: _grown(old.get(key, 0), each) for key, each in now.items()}
        return {key: each for key, each in parts.items() if each}
    if isinstance(now, list):
        left = list(before) if isinstance(before, list) else []
        if any("count" in each for each in now if isinstance(each, dict)):
            return _new_events(left, now)
        return [each for each in now if each not in left or left.remove(each)]  # type: ignore[func-returns-value]
    return now - before if isinstance(before, int) and before <= now else now


def _new_events(before: list[Any], now: list[Any]) -> list[Any]:
    """Return the kinds of events that were logged after all events of the first reading, each with how many are new."""
    counts = {(each["bdf"], each.get("xid"), each.get("first")): each.get("count", 0) for each in before}
    seen = max((each["time"] for each in before), default=-1)
    return [
        {**each, "count": max(1, each["count"] - counts.get((each["bdf"], each.get("xid"), each["first"]), 0))}
        for each in now
        if each["time"] > seen
    ]
