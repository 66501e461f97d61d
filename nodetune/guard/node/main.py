"""The command line of the guard. A valid earlier pass is answered before anything else is imported.

Exit codes: 0 run the job, 1 do not, 3 inconclusive (the job runs, and the reason is printed); others are tool errors.
"""

from __future__ import annotations

import os
import sys

from nodetune.guard.node import cache, records
from nodetune.guard.node.invocation import DOING, INCONCLUSIVE, RUN, Arguments, InconclusiveError, Job, say


def main(arguments: list[str]) -> int:
    """Do it. Nothing that is raised leaves here: a fault is one line, and INCONCLUSIVE."""
    try:
        asked, job = Arguments(arguments), Job(os.environ)
        if asked.doing == "prolog" and cache.holds(asked.run, asked.policy, job):
            records.heartbeat(asked.run, "pass again", job.id)
            return RUN
        from importlib import import_module

        code: int = import_module(f"nodetune.guard.node.{DOING[asked.doing]}").run(asked, job)
    except BaseException as problem:  # noqa: BLE001  (whatever it is, it must not be the reason for a drain)
        say(f"nodetune: inconclusive: {_in_words(problem)}")
        return INCONCLUSIVE
    return code


def _in_words(problem: BaseException) -> str:
    if isinstance(problem, InconclusiveError):
        return str(problem)
    if isinstance(problem, OSError) and problem.strerror and problem.filename:
        return f"{problem.filename}: {problem.strerror.lower()}"
    return f"{type(problem).__name__}: {problem}"


def script() -> None:
    """Run nodetune-prolog."""
    os._exit(main(sys.argv[1:]))
