"""A pass that still counts: per GPU, of this boot and this very policy. A failure is never kept.

What is kept: `pass/GPU3` (or `pass/node` for jobs without GPUs) with the policy's stamp, the boot, and from when until
when, in nanoseconds of the clock that no one sets.
"""

from __future__ import annotations

import os
import time

from nodetune.guard.node import records

TYPE_CHECKING = False  # the real one is in typing, which costs more than the whole short way
if TYPE_CHECKING:
    from collections.abc import Iterable

    from nodetune.guard.node.invocation import Job

NODE = "node"


def holds(run: str, policy: str, job: Job) -> bool:
    """Return whether a pass counts for everything that this job holds.

    If so, the job gets the last reading as its snapshot.
    """
    if job.has_gpus and not job.gpus:
        return False
    try:
        seen = os.stat(policy)
        if not (records.trusted(seen) and records.trusted(os.lstat(run))):
            return False
        now, boot = _now(), records.boot_id()
        held = all(_counts(os.path.join(run, records.PASSES, name), stamp(seen), boot, now) for name in names(job))
    except (OSError, ValueError):
        return False
    if held and job.has_gpus:
        records.snapshot(run, job.id)
    return held


def names(job: Job) -> list[str]:
    return [f"GPU{number}" for number in job.gpus] if job.has_gpus else [NODE]


def stamp(seen: os.stat_result) -> str:
    """Return a text that changes whenever the policy is written again."""
    return f"{seen.st_dev}-{seen.st_ino}-{seen.st_size}-{seen.st_mtime_ns}-{seen.st_ctime_ns}"


def keep(run: str, policy: str, passed: Iterable[str], seconds: float) -> None:
    """Let these passes count for some seconds. Raise OSError."""
    now = _now()
    line = f"{policy} {records.boot_id()} {now} {now + int(seconds * 1e9)}\n"
    for name in passed:
        records.write(os.path.join(run, records.PASSES, name), line)


def clear(run: str, passed: Iterable[str]) -> None:
    """Forget these passes, so that the next run checks again."""
    for name in passed:
        try:
            os.unlink(os.path.join(run, records.PASSES, name))
        except OSError:
            continue


def _counts(path: str, policy: str, boot: str, now: int) -> bool:
    its_policy, its_boot, since, until = records.read(path).split()
    return (its_policy, its_boot) == (policy, boot) and int(since) <= now < int(until)


def _now() -> int:
    """Return the nanoseconds since boot, including sleep: nobody can set this clock."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
