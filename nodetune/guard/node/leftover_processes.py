"""Processes that a job left on its GPUs."""

from __future__ import annotations

import copy
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from nodetune.guard.node import records
from nodetune.onhost import slurm_cgroup

if TYPE_CHECKING:
    from nodetune.guard.node.invocation import Job

    Process = Mapping[str, Any]

COMPUTE, GRAPHICS = "gpu.compute_running_processes", "gpu.graphics_running_processes"
ENDING_POLL = 0.05


def of_job(
    found: Mapping[str, Any], job: Job, uid: int | None, mine: Callable[[str], bool], until: float
) -> tuple[list[int], dict[str, Any]]:
    """Return the leftover processes of the job that do not end on their own, and the facts with only those.

    `mine` says of a GPU whether it is the job's: the epilog ignores other GPUs. The facts of the node stay as they are.

    A job has its GPUs exclusively: a compute process there is a leftover unless another job started it. A graphics
    process is one only if it is the user's (display servers are the system's).
    """
    facts = {kind: copy.deepcopy(found[kind]) for kind in (COMPUTE, GRAPHICS) if kind in found}
    for kind in (COMPUTE, GRAPHICS):
        each = facts.get(kind, {}).get("each", {})
        each.update({gpu: {"value": []} for gpu, one in each.items() if "value" in one and not mine(gpu)})
    _leave(facts, COMPUTE, lambda process: not _of_another_job(process, job))
    _leave(facts, GRAPHICS, lambda process: process["uid"] == uid and not _of_another_job(process, job))
    lasting = _after_ending({each["pid"] for kind in (COMPUTE, GRAPHICS) for each in _processes(facts, kind)}, until)
    for kind in (COMPUTE, GRAPHICS):
        _leave(facts, kind, lambda process: process["pid"] in lasting)
    return sorted(lasting), facts


def end(pid: int, job: Job, uid: int | None) -> bool:
    """Kill a process of the job's user: never root's, another job's, or one that got the number meanwhile.

    It may be another job's by its own word, where that job runs here: killing the wrong one costs more than sparing one.
    """
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        may = bool(uid) and _owner(pid) == uid and {_job_of(pid), _running(_claimed(pid))} <= _own(job)
        if may:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    except OSError:
        return False
    finally:
        os.close(handle)
    return may


def _processes(facts: Mapping[str, Any], kind: str) -> Iterable[Process]:
    for one in facts.get(kind, {}).get("each", {}).values():
        yield from one.get("value", ())


def _leave(facts: dict[str, Any], kind: str, wanted: Callable[[Process], bool]) -> None:
    each = facts.get(kind, {}).get("each", {})
    for gpu, one in each.items():
        if "value" in one:
            each[gpu] = {"value": [process for process in one["value"] if wanted(process)]}


def _of_another_job(process: Process, job: Job) -> bool:
    return _job_of(process["pid"]) not in _own(job)


def _own(job: Job) -> set[str]:
    """Return what `_job_of` may say of a process of this job, whose slurmstepd may have ended before it."""
    return {"", job.id, job.sluid}


def _job_of(pid: int) -> str:
    """Return the job that started a process, by its cgroup or the slurmstepd above it; empty if unknown.

    By nothing that its user decides, such as its environment. If only the name of the job's cgroup is known: that.
    """
    with suppress(OSError):
        found: str = slurm_cgroup.job(records.read(f"/proc/{pid}/cgroup"), _titled)
        if found:
            return found
        while pid > 1:
            job = _served_by(pid)
            if job:
                return job
            pid = int(_status(pid)["PPid"][0])
    return ""


def _titled(pid: int) -> str:
    with suppress(OSError):
        return _served_by(pid)
    return ""


def _served_by(pid: int) -> str:
    """Return the job of a slurmstepd process; empty for other processes. Raise OSError."""
    found = slurm_cgroup.STEPD.match(records.read(f"/proc/{pid}/cmdline"))
    its_own = found and _owner(pid) == 0 and os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "slurmstepd"
    return found[1] if found and its_own else ""


def _claimed(pid: int) -> str:
    """Return the job that a process names in its environment; empty if none. Raise OSError."""
    entries = dict(each.partition("=")[::2] for each in records.read(f"/proc/{pid}/environ").split("\0"))
    return entries.get("SLURM_JOB_ID", "")


def _running(job: str) -> str:
    """Return the job if it runs on this node, else nothing."""
    for entry in os.listdir("/proc") if job else ():
        with suppress(OSError):
            if entry.isdigit() and _served_by(int(entry)) == job:
                return job
    return ""


def _owner(pid: int) -> int:
    """Return the real user: a setuid program does not count as root's. Raise OSError."""
    return int(_status(pid)["Uid"][0])


def _status(pid: int) -> dict[str, list[str]]:
    rows = (line.partition(":")[::2] for line in records.read(f"/proc/{pid}/status").splitlines())
    return {name: value.split() for name, value in rows}


def _after_ending(pids: set[int], until: float) -> set[int]:
    """Return the processes that are still there after a moment: a killed process needs time to release a GPU."""
    left = {pid for pid in pids if _lives(pid)}
    while left and time.monotonic() < until:
        time.sleep(ENDING_POLL)
        left = {pid for pid in left if _lives(pid)}
    return left


def _lives(pid: int) -> bool:
    with suppress(OSError, IndexError):
        return records.read(f"/proc/{pid}/stat").rpartition(")")[2].split()[0] not in "ZX"
    return False
