"""The command line of the guard. A valid earlier pass is answered before anything else is imported.

Exit codes: 0 run the job, 1 do not, 3 inconclusive (the job runs, and the reason is printed); others are tool errors.
"""

from __future__ import annotations

import os
import sys
import time

from nodetune.guard.node import cache, records
from nodetune.guard.node.job import Job

RUN, HOLD, INCONCLUSIVE = 0, 1, 3
DOING = {
    **{name: name for name in ("prolog", "epilog", "health", "show", "report", "clear", "pod")},
    "look": "check_once",
    "looks": "check_loop",
}
"""What it is asked for → the module that does it. Pods of another edition ask by the same words."""

GIVEN = {
    "policy": "/etc/nodetune/guard.json",
    "run": "/run/nodetune/guard",
    "nonce": "",
    "result": "/result",
    "host": "/host",
    "enforce": "",
}
MAX_MESSAGE_LENGTH = 500


class InconclusiveError(Exception):
    """The guard cannot judge; the text says why, in one line. The job runs."""


class Arguments:
    """The command line: what to do, and with which files. `nonce` marks the failure record as one of this run.

    In the pods of Kubernetes: `result` is the folder that they share, `host` where the root of the host is, and `enforce`
    the checks that make a problem.
    """

    def __init__(self, arguments: list[str]) -> None:
        self.started = time.monotonic()
        words = list(arguments)
        given = dict(GIVEN)
        while len(words) >= 2 and words[-2][:2] == "--" and words[-2][2:] in given:
            value, name = words.pop(), words.pop()[2:]
            given[name] = value
        self.doing = words[0] if words else "prolog"
        self.policy, self.run, self.nonce = given["policy"], given["run"], given["nonce"]
        self.result, self.host, self.enforce = given["result"], given["host"], given["enforce"]
        if len(words) > 1 or self.doing not in DOING:
            raise InconclusiveError(
                f"asked for {' '.join(words)!r}: it knows {', '.join(DOING)} and --{', --'.join(given)}"
            )


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


def say(text: str) -> None:
    """Print one line to standard output, if there is one and it takes it at once: a full pipe must not hold up a job."""
    import select

    line = " ".join(text.split()).encode("utf-8", "backslashreplace")[:MAX_MESSAGE_LENGTH]
    try:
        if select.select([], [1], [], 0)[1]:
            os.write(1, line + b"\n")
    except (OSError, ValueError):
        pass


def script() -> None:
    """Run nodetune-prolog."""
    os._exit(main(sys.argv[1:]))
