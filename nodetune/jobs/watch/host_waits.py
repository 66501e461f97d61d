"""Judge what keeps processes from giving their GPU work: the CPU, a disk, the network. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from nodetune.foundation import text
from nodetune.jobs.watch.model import CPU, DISK, NETWORK, PAUSED, UNKNOWN, Process, percent

FULL_CORE = 0.85
"""Cores of a thread that is never without work. Recorded: 1.00; a thread that waits has 0.36 or less."""
IN_GAPS = 0.7
"""Share of the time without a kernel in which the process is on a CPU: while one runs, a thread may only spin for its end."""
WAITING = 0.3
"""Share of the looks in which a first thread waits for a file or the network. Recorded: 0.92 to 1."""
MOSTLY = 0.5
QUIET_CORES = 0.1
"""Cores below which a job does nothing, if the GPU does nothing."""
NO_CORES = 0.02
"""The same where the driver's utilization is all that is known: it was 0 for a GPU that worked 9 % of the time."""
NO_CPU = 0.2
"""Share of the time in which a thread is ready and has no CPU."""
STOPPED = 0.3
"""Share of the periods in which a CPU limit stopped a process."""
OWN_CPU = "cpu-own"
NETWORK_FILES = re.compile(r"nfs|lustre|ceph|gpfs|beegfs|weka|cifs|smb|9p|fuse\.|panfs|gluster|network")


class Cause(NamedTuple):
    """The verdict about a gap; unknown if nothing explains it."""

    verdict: str
    rule: str
    evidence: tuple[str, ...]


def cause(processes: Sequence[Process], works: float) -> Cause:
    """Return why a GPU has no work for a part of the time. `works`: the share of the time with a kernel running."""
    mains = [each for each in processes if each.pid == each.above]
    helpers = [each for each in processes if each.pid != each.above]
    return (
        _file(mains, WAITING, "its first thread", 1)
        or _remote(mains, works)
        or _limited(mains)
        or _own(mains, works)
        or _helpers(mains, helpers)
        or _paused(mains, works)
        or _unexplained(processes)
    )


def _file(processes: Sequence[Process], least: float, who: str, of: int) -> Cause | None:
    """Return the verdict if processes wait for files."""
    found = [each for each in processes if each.share("storage") >= least]
    if not found:
        return None
    worst = max(found, key=lambda each: each.share("storage"))
    kind = worst.most("storage")
    where = f" ({text.plain(kind, 40)})" if kind else ""
    count = f"{len(found)} of {of} {who}" if of > 1 else who
    waits = f"{count} {'wait' if len(found) > 1 else 'waits'} for files{where} {percent(worst.share('storage'))} of the time"
    rate = f"{sum(each.read for each in found):.1f} MB/s are read"
    verdict = NETWORK if NETWORK_FILES.match(kind) else DISK
    return Cause(verdict, "files", (waits, rate))


def _remote(mains: Sequence[Process], works: float) -> Cause | None:
    """Return the verdict if a first thread waits for data from another host. One that never gets any may be a server."""
    for each in mains:
        if each.share("network") >= WAITING and works > 0.005:
            where = text.plain(each.most("network"), 60)
            told = f"its first thread waits for data from {where} {percent(each.share('network'))} of the time"
            return Cause(NETWORK, "socket", (told,))
    return None


def _limited(mains: Sequence[Process]) -> Cause | None:
    """Return the verdict if a process is kept from running."""
    for each in mains:
        if each.throttled >= STOPPED:
            told = f"the CPU limit of its cgroup stopped it in {percent(each.throttled)} of the periods"
            return Cause(CPU, "cpu-limit", (told, _cores(each)))
        if each.delay >= NO_CPU and each.cores + each.delay >= FULL_CORE:
            told = f"its first thread was ready and had no CPU {percent(each.delay)} of the time"
            return Cause(CPU, "cpu-shared", (told, _cores(each)))
    return None


def _own(mains: Sequence[Process], works: float) -> Cause | None:
    """Return the verdict if a process computes itself between its kernels."""
    for each in mains:
        if each.cores >= max(FULL_CORE, works + IN_GAPS * (1 - works)) and each.share("run") >= MOSTLY:
            return Cause(CPU, OWN_CPU, (_cores(each), "it launches kernels too slowly, or computes between them"))
    return None


def _helpers(mains: Sequence[Process], helpers: Sequence[Process]) -> Cause | None:
    """Return the verdict if a process waits for those that it started, and these wait or compute."""
    # a worker passes its batches by a pipe or, as PyTorch's loader does, by a socket of this host
    if not any(sum(map(each.share, ("wait", "sleep", "local"))) >= MOSTLY for each in mains):
        return None
    found = _file(helpers, MOSTLY, "processes that it started", len(helpers))
    if found:
        return found
    for each in helpers:
        if each.share("network") >= MOSTLY:
            told = f"process {each.pid} that it started waits for data from {text.plain(each.most('network'), 60)}"
            return Cause(NETWORK, "socket-loader", (told,))
    full = [each for each in helpers if each.cores >= FULL_CORE]
    if not full:
        return None
    what = f"{len(full)} of {len(helpers)} processes that it started {'uses' if len(full) == 1 else 'use'} a whole core"
    slow = f"the others wait: process {full[0].pid} ({text.plain(full[0].name, 40)}) is the slow one"
    return Cause(CPU, "cpu-loader", (what, slow) if len(full) == 1 < len(helpers) else (what,))


def _paused(mains: Sequence[Process], works: float) -> Cause | None:
    """Return the verdict if a first thread sleeps for as long as the GPU has no work."""
    for each in mains:
        if each.share("sleep") >= max(MOSTLY, IN_GAPS * (1 - works)):
            told = f"its first thread sleeps {percent(each.share('sleep'))} of the time: a pause of its program, or polling"
            return Cause(PAUSED, "sleep", (told,))
    return None


def _unexplained(processes: Sequence[Process]) -> Cause:
    """Return what is known where no rule applies."""
    if not any(each.doing for each in processes):
        return Cause(UNKNOWN, "process-hidden", ("its processes are not visible from here",))
    share = max(each.share("local") for each in processes)
    if share >= MOSTLY:
        told = f"a first thread waits for another program of this host, by a socket, {percent(share)} of the time"
        return Cause(UNKNOWN, "local", (told,))
    cores = sum(each.cores for each in processes)
    told = f"its processes use {cores:.2f} cores, and nothing that this host counts explains the wait"
    return Cause(UNKNOWN, "not-seen", (told,))


def are_quiet(processes: Sequence[Process], most: float) -> bool:
    """Return whether visible processes use less than `most` cores and do not wait for files."""
    waits = any(each.share("storage") >= WAITING for each in processes)
    return any(each.doing for each in processes) and sum(each.cores for each in processes) < most and not waits


def _cores(process: Process) -> str:
    return f"process {process.pid} ({text.plain(process.name, 40)}) uses {process.cores:.2f} cores"
