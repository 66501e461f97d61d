"""The command line of the guard, and its answers. Imports next to nothing, so that a cached pass is fast."""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False  # the real one is in typing, which costs more than the whole short way
if TYPE_CHECKING:
    from collections.abc import Mapping

RUN, HOLD, INCONCLUSIVE = 0, 1, 3
DOING = {
    **{name: name for name in ("prolog", "epilog", "health", "show", "report", "clear", "pod")},
    "look": "check_once",
    "looks": "check_loop",
    "alive": "container_state",
    "ready": "container_state",
}
"""Word on the command line → the module that does it. Pods of another edition use the same words."""

GIVEN = {
    "policy": "/etc/nodetune/guard.json",
    "run": "/run/nodetune/guard",
    "kept": "/var/lib/nodetune/guard",
    "nonce": "",
    "result": "/result",
    "state": "",
    "host": "/host",
    "enforce": "",
    "every": "30",
    "gpus": "0",
}
MAX_MESSAGE_LENGTH = 500
MAX_GPUS = 1024


class InconclusiveError(Exception):
    """The guard cannot judge; the text says why, in one line. The job runs."""


class Arguments:
    """The command line: what to do, and with which files. `nonce` marks the failure record as one of this run.

    `kept` is the folder that survives a reboot; empty in the pods of Kubernetes. There `result` is the folder that they
    share, `state` the reporter's own, `host` where the root of the host is, `enforce` the checks that make a problem,
    `every` the seconds from look to look, and `gpus` how many GPUs a label of the node promises.
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
        self.result, self.host, self.enforce, self.every = (
            given[name] for name in ("result", "host", "enforce", "every")
        )
        self.kept, self.state = given["kept"], given["state"]
        self.gpus = int(given["gpus"]) if given["gpus"].isascii() and given["gpus"].isdigit() else 0
        if len(words) > 1 or self.doing not in DOING:
            raise InconclusiveError(
                f"asked for {' '.join(words)!r}: it knows {', '.join(DOING)} and --{', --'.join(given)}"
            )


class Job:
    """A job with its GPUs, as Slurm describes it to prolog and epilog in the environment.

    `gpus` are places in Slurm's list of the node's GPUs (see gpu_index). A job may hold GPUs (`has_gpus`) that are not
    named there: MIG devices. `sluid` is the job's other name (Slurm 25.11 and later). `node` is what Slurm or the pod (NODE_NAME) calls it. `conf` is the slurm.conf in use; empty if Slurm does not say.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        number = environment.get("SLURM_JOB_ID", "")
        self.id = number if number.isascii() and number.isdigit() and len(number) < 20 else ""
        self.sluid = environment.get("SLURM_JOB_SLUID", "")
        self.node = environment.get("SLURMD_NODENAME") or environment.get("NODE_NAME") or os.uname().nodename
        self.conf = environment.get("SLURM_CONF", "")
        named = environment.get("SLURM_JOB_GPUS", "").strip()
        mig = "MIG-" in environment.get("CUDA_VISIBLE_DEVICES", "")
        self.has_gpus = bool(named)
        self.gpus: tuple[int, ...] = () if mig else _numbers(named)


def say(text: str) -> None:
    """Print one line to standard output, if there is one and it takes it at once: a full pipe must not hold up a job."""
    import select

    line = " ".join(text.split()).encode("utf-8", "backslashreplace")[:MAX_MESSAGE_LENGTH]
    try:
        if select.select([], [1], [], 0)[1]:
            os.write(1, line + b"\n")
    except (OSError, ValueError):
        pass


def _numbers(text: str) -> tuple[int, ...]:
    """Parse `0,2-3` into (0, 2, 3); return nothing for any other text."""
    found: set[int] = set()
    for part in text.split(",") if text else ():
        first, dash, last = part.strip().partition("-")
        if not (first.isascii() and first.isdigit() and (not dash or (last.isascii() and last.isdigit()))):
            return ()
        low, high = int(first), int(last or first)
        if not low <= high < MAX_GPUS:
            return ()
        found.update(range(low, high + 1))
    return tuple(sorted(found))
