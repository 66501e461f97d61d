"""From time to time, as Slurm's HealthCheckProgram or by a timer: the gating checks over the whole node.

Slurm does nothing when this fails, starts one after the other even where one hangs, and gives it SLURMD_NODENAME and no
more. So it takes a lock, leaves its result in `health.json`, and drains by itself where the policy says `drain`. Where
Slurm drained the node because a job was held it replaces the reason `Prolog error` by ours. It ends with 0 if it has a
verdict, whatever it is: `health.json` has it.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from nodetune.audit import devices
from nodetune.guard.node import drain, failure_limit, gating_checks, hardware, log, policy, read, records, scontrol
from nodetune.guard.node.invocation import INCONCLUSIVE, RUN, say

if TYPE_CHECKING:
    from nodetune.guard.node.invocation import Arguments, Job

RESULT = "health.json"
VERDICT = "verdict.json"
"""The last result with a verdict: node-problem-detector keeps it while the guard is inconclusive."""
LOCK = "health.lock"
READ_SHARE = 0.8
REASON_SHARE = 0.2
SHARED_SHARE = 0.1
"""Of the whole time: until when to read, until when to give a drain its reason, and what asking the shared folder may take."""


def run(asked: Arguments, job: Job) -> int:
    """Run the health check and return the exit code. Raise InconclusiveError or OSError."""
    chosen = policy.load(asked.policy)
    records.prepare(asked.run)
    with _alone(asked.run) as free:
        if not free:
            say("nodetune: an earlier health check is still running")
            return RUN
        explained = _explain(asked, job, chosen)
        result = look(asked, job.node, chosen)
        if result["verdict"] == "fail":
            result["why_not"] = _act(asked, chosen, result)
        return _tell(asked, result, explained)


@contextmanager
def _alone(run: str) -> Iterator[bool]:
    """Yield whether no other health check runs. The lock ends with the process."""
    handle = os.open(os.path.join(run, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        free = True
    except BlockingIOError:
        free = False
    try:
        yield free
    finally:
        os.close(handle)


def _explain(asked: Arguments, job: Job, chosen: policy.Policy) -> str:
    try:
        there = scontrol.Slurm(chosen.scontrol, asked.started + chosen.total * REASON_SHARE)
        return drain.give_reasons(there, asked.run, job.node)
    except (scontrol.ScontrolError, OSError) as problem:
        return f"could not set the reason of a drain: {problem}"


def look(asked: Arguments, node: str, chosen: policy.Policy) -> dict[str, Any]:
    """Read and judge. Waived findings are reported but do not count."""
    left = asked.started + chosen.total * READ_SHARE - time.monotonic()
    names = {name for check in chosen.checks for name in check["facts"]}
    reading = read.start(names, left, chosen.step, chosen.stuck, asked).finish()
    host = hardware.host_facts(asked, chosen, reading)
    views = gating_checks.for_a_drain(reading.facts, reading.failed)
    found = gating_checks.findings(chosen.checks, host, reading.failed, views)
    waived = chosen.waived()
    failed = [each for each in found if each.status == "fail" and each.check not in waived]
    unknown = [each for each in found if each.status == "unknown"]
    return {
        "verdict": "fail" if failed else "inconclusive" if unknown else "pass",
        "node": node,
        "boot": records.boot_id(),
        "time": int(time.time()),
        "mode": chosen.mode,
        "act": chosen.act,
        "seconds": round(time.monotonic() - asked.started, 3),
        "reason": log.reason(failed, devices.named(failed, host)) if failed else log.unknown(unknown),
        "why_not": "",
        "checks": [each.check for each in failed],
        "findings": [log.as_data(each) for each in failed],
        "unknown": [log.as_data(each) for each in unknown],
        "waived": [log.as_data(each) for each in found if each.status == "fail" and each.check in waived],
        **(
            {"hardware": hardware.for_reporter(asked, chosen, host)}
            if not asked.kept and hardware.asked_for(chosen)
            else {}
        ),
    }


def _act(asked: Arguments, chosen: policy.Policy, result: Mapping[str, Any]) -> str:
    """Drain the node if the policy requires it. Return why it was not done."""
    if chosen.act != "drain":
        return "the next job's prolog handles the node (act: slurm)"
    there = scontrol.Slurm(chosen.scontrol, asked.started + chosen.total)
    seconds = chosen.total * SHARED_SHARE
    return drain.drain(
        there, asked.run, result, lambda: failure_limit.forbidden(chosen, result["node"], seconds, asked.run)
    )


def _tell(asked: Arguments, result: Mapping[str, Any], explained: str) -> int:
    keep(asked.run, result)
    log.log({**result, "program": "health", "explained": explained})
    if explained:
        say(f"nodetune: {explained}")
    if result["verdict"] == "inconclusive":
        say(f"nodetune: inconclusive: {result['reason']}")
        return INCONCLUSIVE
    kept = f"; the node stays in service: {result['why_not']}" if result["why_not"] else ""
    say(f"{result['reason'] or 'nodetune: pass'}{kept}")
    return RUN


def keep(run: str, result: Mapping[str, Any]) -> None:
    """Leave the result for others to read."""
    with suppress(OSError):  # without room for it, its age tells that something is wrong
        for name in (RESULT,) if result["verdict"] == "inconclusive" else (RESULT, VERDICT):
            records.write(os.path.join(run, name), json.dumps(result) + "\n")
    reason = result["reason"] if result["verdict"] == "fail" else ""
    records.heartbeat(run, f"health: {result['verdict']}", "", reason)
