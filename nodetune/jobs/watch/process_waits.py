"""Judge what keeps processes from giving their GPU work: the CPU, a disk, the network. Pure."""

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
"""Share of the samples in which a first thread waits for a file or the network. Recorded: 0.92 to 1."""
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
    mains = [process for process in processes if process.pid == process.gpu_pid]
    helpers = [process for process in processes if process.pid != process.gpu_pid]
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
    waiting = [process for process in processes if process.share("storage") >= least]
    if not waiting:
        return None
    worst = max(waiting, key=lambda process: process.share("storage"))
    kind = worst.most("storage")
    where = f" ({text.plain(kind, 40)})" if kind else ""
    count = f"{len(waiting)} of {of} {who}" if of > 1 else who
    waits = f"{count} {'wait' if len(waiting) > 1 else 'waits'} for files{where} {percent(worst.share('storage'))} of the time"
    rate = f"{sum(process.read for process in waiting):.1f} MB/s are read"
    verdict = NETWORK if NETWORK_FILES.match(kind) else DISK
    return Cause(verdict, "files", (waits, rate))


def _remote(mains: Sequence[Process], works: float) -> Cause | None:
    """Return the verdict if a first thread waits for data from another host. One that never gets any may be a server."""
    for process in mains:
        if process.share("network") >= WAITING and works > 0.005:
            where = text.plain(process.most("network"), 60)
            evidence = f"its first thread waits for data from {where} {percent(process.share('network'))} of the time"
            return Cause(NETWORK, "socket", (evidence,))
    return None


def _limited(mains: Sequence[Process]) -> Cause | None:
    """Return the verdict if a process is kept from running."""
    for process in mains:
        if process.throttled >= STOPPED:
            evidence = f"the CPU limit of its cgroup stopped it in {percent(process.throttled)} of the periods"
            return Cause(CPU, "cpu-limit", (evidence, _cores(process)))
        if process.delay >= NO_CPU and process.cores + process.delay >= FULL_CORE:
            evidence = f"its first thread was ready and had no CPU {percent(process.delay)} of the time"
            return Cause(CPU, "cpu-shared", (evidence, _cores(process)))
    return None


def _own(mains: Sequence[Process], works: float) -> Cause | None:
    """Return the verdict if a process computes itself between its kernels."""
    for process in mains:
        if process.cores >= max(FULL_CORE, works + IN_GAPS * (1 - works)) and process.share("run") >= MOSTLY:
            return Cause(CPU, OWN_CPU, (_cores(process), "it launches kernels too slowly, or computes between them"))
    return None


def _helpers(mains: Sequence[Process], helpers: Sequence[Process]) -> Cause | None:
    """Return the verdict if a process waits for those that it started, and these wait or compute."""
    # a worker passes its batches by a pipe or, as PyTorch's loader does, by a socket of this host
    if not any(sum(map(process.share, ("wait", "sleep", "local"))) >= MOSTLY for process in mains):
        return None
    file_wait = _file(helpers, MOSTLY, "processes that it started", len(helpers))
    if file_wait:
        return file_wait
    for process in helpers:
        if process.share("network") >= MOSTLY:
            evidence = (
                f"process {process.pid} that it started waits for data from {text.plain(process.most('network'), 60)}"
            )
            return Cause(NETWORK, "socket-loader", (evidence,))
    full = [process for process in helpers if process.cores >= FULL_CORE]
    if not full:
        return None
    what = f"{len(full)} of {len(helpers)} processes that it started {'uses' if len(full) == 1 else 'use'} a whole core"
    slow = f"the others wait: process {full[0].pid} ({text.plain(full[0].name, 40)}) is the slow one"
    return Cause(CPU, "cpu-loader", (what, slow) if len(full) == 1 < len(helpers) else (what,))


def _paused(mains: Sequence[Process], works: float) -> Cause | None:
    """Return the verdict if a first thread sleeps for as long as the GPU has no work."""
    for process in mains:
        if process.share("sleep") >= max(MOSTLY, IN_GAPS * (1 - works)):
            evidence = f"its first thread sleeps {percent(process.share('sleep'))} of the time: a pause of its program, or polling"
            return Cause(PAUSED, "sleep", (evidence,))
    return None


def _unexplained(processes: Sequence[Process]) -> Cause:
    """Return what is known where no rule applies."""
    if not any(process.activity for process in processes):
        return Cause(UNKNOWN, "process-hidden", ("its processes are not visible from here",))
    share = max(process.share("local") for process in processes)
    if share >= MOSTLY:
        evidence = f"a first thread waits for another program of this host, by a socket, {percent(share)} of the time"
        return Cause(UNKNOWN, "local", (evidence,))
    cores = sum(process.cores for process in processes)
    evidence = f"its processes use {cores:.2f} cores, and nothing that this host counts explains the wait"
    return Cause(UNKNOWN, "not-seen", (evidence,))


def are_quiet(processes: Sequence[Process], most: float) -> bool:
    """Return whether visible processes use less than `most` cores and do not wait for files."""
    waits = any(process.share("storage") >= WAITING for process in processes)
    return (
        any(process.activity for process in processes)
        and sum(process.cores for process in processes) < most
        and not waits
    )


def _cores(process: Process) -> str:
    return f"process {process.pid} ({text.plain(process.name, 40)}) uses {process.cores:.2f} cores"
