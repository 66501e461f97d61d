"""The check container of Kubernetes: from time to time, the gating checks over the whole node, as on idle nodes of Slurm.

It has the privileges that reading takes, and no token. Each look is a child that makes the host's root its own. What it
finds goes to the folder of the guard on the host, and to the reporter.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

from nodetune import data
from nodetune.guard.node import gating_checks, health, log, policy, read, records, report
from nodetune.guard.node.invocation import InconclusiveError, say
from nodetune.onhost import host_root, worker

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from nodetune.guard.node.invocation import Arguments, Job
    from nodetune.guard.node.policy import Policy

SLACK_SECONDS = 2.0
"""Beyond the time of the policy, until a look is left behind."""
USED_LATER = ("nodetune.onhost.nvml", "nodetune.onhost.nvml_limits", "nodetune.probe.gpu_facts", "pynvml")
"""The readers import these when they need them: once here costs less than in each look."""


def run(asked: Arguments, job: Job) -> NoReturn:
    """Look until the process is ended. Raise InconclusiveError or OSError."""
    every = _seconds(asked.every)
    records.prepare(asked.run)
    before = ""
    while True:
        started = time.monotonic()
        result = look(asked, job.node)
        records.write(os.path.join(asked.result, health.RESULT), json.dumps(result) + "\n")
        told = f"{result['verdict']}: {result['reason']}" if result["reason"] else str(result["verdict"])
        if told != before:
            say(f"nodetune: {told.replace(records.PREFIX, '')}")
        before = told
        time.sleep(max(0.0, every - (time.monotonic() - started)))


def _seconds(text: str) -> float:
    """Return the seconds from look to look. Raise InconclusiveError."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < report.STALE_SECONDS:
        raise InconclusiveError(f"--every is {text!r}: it takes seconds, fewer than {report.STALE_SECONDS:.0f}")
    return found


def look(asked: Arguments, node: str) -> dict[str, Any]:
    """Return what the health check finds; one that cannot be made is inconclusive."""
    asked.started = time.monotonic()
    try:
        chosen = policy.load(asked.policy)
        _import_all(chosen)
        return dict(worker.ask(_looking(asked, node, chosen), chosen.total + SLACK_SECONDS, "the health check"))
    except (InconclusiveError, worker.NoAnswerError, OSError) as problem:
        return _no_verdict(node, problem)


def _import_all(chosen: Policy) -> None:
    """Import what a look may need. Raise InconclusiveError for a check that this version does not have."""
    gating_checks.load(chosen.checks)
    families = read.families(name for check in chosen.checks for name in check["facts"])
    for name in (*USED_LATER, *(f"nodetune.probe.{family}" for family in families)):
        import_module(name)
    data.table("machines")  # its file is not on the host


def _no_verdict(node: str, why: object) -> dict[str, Any]:
    return {"verdict": "inconclusive", "node": node, "time": int(time.time()), "reason": str(why)}


def _looking(asked: Arguments, node: str, chosen: Policy) -> Callable[[Callable[[str], None]], dict[str, Any]]:
    """Return the work of the child."""

    def looking(step: Callable[[str], None]) -> dict[str, Any]:
        step("entering the host's root")
        try:
            if asked.host != "/":
                _enter(asked)
        except host_root.HostRootError as problem:
            return _no_verdict(node, problem)
        step("")
        off = next((path for path in chosen.off if os.path.lexists(path)), "")
        if off:
            return _no_verdict(node, f"switched off by {off}")
        result = health.look(asked, node, chosen)
        health.keep(asked.run, result)
        log.log({**result, "program": "health"})
        return result

    return looking


def _enter(asked: Arguments) -> None:
    """Make the host's root ours. Raise HostRootError."""
    folder = os.open(asked.run, os.O_RDONLY | os.O_DIRECTORY)
    sys.path[:] = [f"/proc/{os.getppid()}/root{each}" for each in sys.path]  # what is imported later is ours, too
    host_root.enter(asked.host)
    asked.run = f"/proc/{os.getpid()}/fd/{folder}"  # the host's root is read-only now; the guard's folder is not
