"""Before a job: read what the gating checks need, judge, and let the job run or not.

The job is held only where a check failed on what it holds, the mode is enforce, nothing switches the guard off, the cap
allows it, and the failure record could be written.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time

from nodetune.guard.node import cache, policy, records
from nodetune.guard.node.invocation import HOLD, INCONCLUSIVE, RUN, InconclusiveError, say

TYPE_CHECKING = False  # the real one is in typing, which costs ten milliseconds before the readers are started
if TYPE_CHECKING:
    from typing import Any

    from nodetune.guard.node.decide import Decision
    from nodetune.guard.node.invocation import Arguments, Job

LOCK_SHARE, READ_SHARE, SHARED_SHARE = 0.4, 0.8, 0.92
"""Of the whole time: when to stop waiting for another run, to end reading, and to wait no more for the shared folder."""
LOCK_POLL = 0.005
ENDING_SECONDS = 0.95
"""How long after its time to end by force, should all other bounds have failed and there be no `timeout` on the node. It
is more than three calls of scontrol take at least (drain, requeue), and less than the entry gives.
"""


def run(asked: Arguments, job: Job) -> int:
    """Run the prolog and return the exit code. Raise InconclusiveError or OSError."""
    chosen = policy.load(asked.policy)
    # nobody catches it: a run that is over is inconclusive
    signal.setitimer(signal.ITIMER_REAL, chosen.total + ENDING_SECONDS)
    records.prepare(asked.run)
    checks = [check for check in chosen.checks if job.has_gpus or check["about"] == "node"]
    decision = _judged(asked, job, chosen, checks) if checks else None
    if decision is None:
        return _nothing_to_tell(asked, job, chosen, checks)
    why_not = _hold(asked, job, chosen, decision) if decision.verdict == "fail" else ""
    return _tell(asked, job, chosen, decision, why_not)


def _nothing_to_tell(asked: Arguments, job: Job, chosen: policy.Policy, checks: list[dict[str, Any]]) -> int:
    """Record a pass without a reading: no check concerns this job, or another run has just read."""
    if not checks:
        _keep(asked, chosen, [cache.NODE])
    records.heartbeat(asked.run, "pass again" if checks else "pass", job.id)
    say("nodetune: pass (recent run)" if checks else "nodetune: pass: no check applies to this job")
    return RUN


def _judged(asked: Arguments, job: Job, chosen: policy.Policy, checks: list[dict[str, Any]]) -> Decision | None:
    """Return the decision, or None if another run has just passed for us. Raise InconclusiveError."""
    lock = os.open(os.path.join(asked.run, records.LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        waited = _waited(lock, asked.started + chosen.total * LOCK_SHARE)
        if waited and cache.holds(asked.run, asked.policy, job):
            return None
        return _read(asked, job, chosen, checks, waited=waited)
    finally:
        os.close(lock)


def _waited(lock: int, until: float) -> bool:
    """Take the lock; whether that took waiting. Raise InconclusiveError when it stays with another."""
    waited = False
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise InconclusiveError(
                    "another run on this node is still reading, and too little time is left"
                ) from None
            waited = True
            time.sleep(LOCK_POLL)
        else:
            return waited


def _read(asked: Arguments, job: Job, chosen: policy.Policy, checks: list[dict[str, Any]], *, waited: bool) -> Decision:
    from nodetune.guard.node import read

    names = {name for check in checks for name in check["facts"]} | set(chosen.snapshot if job.has_gpus else ())
    began = time.monotonic()
    left = asked.started + chosen.total * READ_SHARE - began
    earlier = read.of_another_run(asked, chosen.stamp, names) if waited else None
    started = earlier or read.start(names, left, chosen.step, chosen.stuck, asked)
    from nodetune.guard.node import decide, gating_checks, gpu_index, hardware

    listed = gpu_index.listed(job.conf, job.node) if job.has_gpus else ()
    reading = started.finish()
    if reading is not earlier:
        read.leave(reading, asked, chosen.stamp, names, began)
    host = hardware.host_facts(asked, chosen, reading)
    found = gating_checks.findings(checks, host, reading.failed)
    decision = decide.decide(found, checks, host, job, chosen.waived(), listed)
    passed = [f"GPU{number}" for number in decision.healthy] if job.has_gpus else [cache.NODE]
    _keep(asked, chosen, passed if decision.verdict == "pass" else [])
    if job.has_gpus and chosen.snapshot:
        _snapshot(asked, job, {name: reading.facts[name] for name in chosen.snapshot if name in reading.facts})
    return decision


def _keep(asked: Arguments, chosen: policy.Policy, passed: list[str]) -> None:
    """Let later runs use a pass. Without space for it they check again, and the verdict stays."""
    try:
        cache.keep(asked.run, chosen.stamp, passed, chosen.reuse)
        records.tidy(asked.run)
    except OSError:
        return


def _snapshot(asked: Arguments, job: Job, facts: dict[str, Any]) -> None:
    """Save what the epilog compares with. If there is no space, the epilog says so."""
    taken = {"time": int(time.time()), "uptime": round(time.clock_gettime(time.CLOCK_BOOTTIME), 3), "facts": facts}
    try:
        records.write(os.path.join(asked.run, records.SNAPSHOTS, records.LAST), json.dumps(taken) + "\n")
    except OSError:
        return
    records.snapshot(asked.run, job.id)


def _hold(asked: Arguments, job: Job, chosen: policy.Policy, decision: Decision) -> str:
    """Write the record without which the job runs. Return why it runs nevertheless; empty when it is held."""
    from nodetune.guard.node import failure_limit, log

    if chosen.mode == "enforce" and not (job.id and asked.nonce):
        return "this is not a run of Slurm's before a job"
    left = asked.started + chosen.total * SHARED_SHARE - time.monotonic()
    why_not = failure_limit.forbidden(chosen, job.node, left, asked.run)
    if why_not:
        return why_not
    try:
        record = log.record(asked.nonce, job, chosen, decision.blamed, decision.devices)
        records.keep(asked.run, job.id, json.dumps(record))
    except OSError as problem:
        return f"the failure record cannot be written: {(problem.strerror or str(problem)).lower()}"
    if chosen.act == "drain":
        _drain(asked, chosen, record)
    return ""


def _drain(asked: Arguments, chosen: policy.Policy, record: dict[str, Any]) -> None:
    """Drain with our reason and requeue the job. What fails of it is Slurm's to do, which sees us end with HOLD."""
    from nodetune.guard.node import drain, log, scontrol

    try:
        failed = drain.hold(scontrol.Slurm(chosen.scontrol, asked.started + chosen.total), asked.run, record)
    except Exception as problem:  # noqa: BLE001  (whatever it is, the job must not start on this node)
        failed = [f"{type(problem).__name__}: {problem}"]
    if failed:
        log.log({"program": "prolog", "verdict": "fail", "job": record["job"], "node": record["node"], "slurm": failed})


def _tell(asked: Arguments, job: Job, chosen: policy.Policy, decision: Decision, why_not: str) -> int:
    """Say what was decided wherever it is looked for. Return the exit code."""
    from nodetune.guard.node import log

    held = decision.verdict == "fail" and not why_not
    seconds = round(time.monotonic() - asked.started, 3)
    said = {name: [log.as_data(each) for each in getattr(decision, name)] for name in ("peers", "unknown", "waived")}
    log.log(
        {
            "program": "prolog",
            "verdict": decision.verdict,
            "held": held,
            "job": job.id,
            "node": job.node,
            "gpus": list(job.gpus),
            "mode": chosen.mode,
            "act": chosen.act,
            "seconds": seconds,
            "reason": decision.reason,
            "why_not": why_not,
            "findings": [log.as_data(each) for each in decision.blamed],
            **{name: found for name, found in said.items() if found},
        }
    )
    reason = decision.reason if decision.verdict == "fail" else ""
    records.heartbeat(asked.run, "held" if held else decision.verdict, job.id, reason)
    say(_line(job, decision, why_not, seconds))
    return _code(chosen, decision, held)


def _line(job: Job, decision: Decision, why_not: str, seconds: float) -> str:
    if decision.verdict == "pass":
        told = f"; of other GPUs: {', '.join(each.check for each in decision.peers)}" if decision.peers else ""
        return f"nodetune: pass ({seconds * 1000:.0f} ms){told}"
    if decision.verdict == "inconclusive":
        return f"nodetune: inconclusive: {decision.reason}"
    first = decision.blamed[0].check
    if why_not:
        return f"{decision.reason}; the job runs: {why_not}"
    return f"{decision.reason}; job {job.id} does not run on {job.node}; next: nodetune explain {first}"


def _code(chosen: policy.Policy, decision: Decision, held: bool) -> int:
    """Return the exit code. A failure that is let through despite the policy counts as inconclusive."""
    if held:
        return HOLD
    wanted = decision.verdict == "fail" and chosen.mode == "enforce"
    return INCONCLUSIVE if wanted or decision.verdict == "inconclusive" else RUN
