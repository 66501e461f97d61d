"""Turn the facts of a host into judged GPUs, and name the GPU that others wait for. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from nodetune.api.model import Absent, Each, HostFacts, HostResult, Unread, Value
from nodetune.foundation import text
from nodetune.jobs.watch.judge import judge
from nodetune.jobs.watch.model import (
    FREE,
    LATE,
    TITLES,
    UNKNOWN,
    Gpu,
    Job,
    Judgement,
    Process,
    WatchedGpu,
    WatchedHost,
)

GPUS, PROCESSES, HOST, USERS = "watch.gpus", "watch.processes", "watch.host", "watch.users"
SECONDS = "watch.seconds."
MAX_LATE = 8
KEPT = ("graphics", "sm", "tensor", "dram", "pcie_rx", "pcie_tx", "nvlink_rx", "nvlink_tx")
"""Figures of GPM that the history keeps."""


def names(seconds: int) -> set[str]:
    """Return the facts that a watch of this length needs."""
    return {GPUS, PROCESSES, HOST, USERS, f"{SECONDS}{seconds}"}


def watched(result: HostResult) -> WatchedHost:
    """Judge the GPUs of a host by its facts."""
    facts = result.facts
    if result.state != "ok" or facts is None:
        return WatchedHost(result.host, result.state, result.message)
    found = facts.get(GPUS)
    if isinstance(found, Absent):
        return WatchedHost(result.host, "ok", found.reason)
    if not isinstance(found, Each):
        return WatchedHost(result.host, "ok", "", unread={"GPUs": _why(found)})
    processes = _processes(facts)
    gpus = [_gpu(name, each.value, processes) for name, each in found.of.items() if isinstance(each, Value)]
    unread = {name: _why(each) for name, each in found.of.items() if not isinstance(each, Value)}
    return WatchedHost(result.host, "ok", result.message, _seconds(facts), tuple(gpus), unread, _value(facts, HOST))


def _why(fact: object) -> str:
    return fact.reason if isinstance(fact, Unread | Absent) else "not understood"


def _value(facts: HostFacts, name: str) -> Mapping[str, Any]:
    found = facts.get(name)
    return found.value if isinstance(found, Value) else {}


def _seconds(facts: HostFacts) -> float:
    found = [each.value for name, each in facts.facts.items() if name.startswith(SECONDS) and isinstance(each, Value)]
    return float(found[0]) if found else 0.0


def _processes(facts: HostFacts) -> list[Process]:
    users = _value(facts, USERS)
    return [
        Process(
            int(pid),
            each["name"],
            "" if each["uid"] is None else str(users.get(str(each["uid"]), each["uid"])),
            each["above"],
            each["job"],
            each["cores"],
            each["delay"] or 0.0,
            each["throttled"] or 0.0,
            each["read"] or 0.0,
            each["doing"],
            each["nccl"],
            each["ended"],
            tuple(each["gpus"]),
        )
        for pid, each in _value(facts, PROCESSES).items()
        if pid.isdecimal()
    ]


def _gpu(name: str, seen: Mapping[str, Any], processes: Sequence[Process]) -> WatchedGpu:
    gpu = Gpu(name, seen["name"], seen["gpm"] or {}, seen.get("no_gpm", ""), seen, seen["held"])
    roots = {each.pid for each in processes if name in each.gpus}
    mine = tuple(each for each in processes if each.above in roots)
    if not mine and seen["pids"]:
        judged = Judgement(UNKNOWN, "process-new", ("its processes began during the watch, or are not visible",))
    else:
        judged = _ended(mine) or judge(gpu, mine)
    return WatchedGpu(gpu, mine, tuple(dict.fromkeys(_job(each) for each in mine)), judged)


def _ended(mine: Sequence[Process]) -> Judgement | None:
    """Return the verdict if a process left the GPU meanwhile: averages over its end describe neither time."""
    gone = [each.pid for each in mine if each.ended and each.pid == each.above]
    if not gone:
        return None
    return Judgement(UNKNOWN, "process-ended", (f"process {gone[0]} ended during the watch",))


def _job(process: Process) -> Job:
    for kind in ("slurm", "container", "pod"):
        if kind in process.job:
            return Job(kind, text.plain(process.job[kind], 80), text.plain(process.user, 40))
    return Job("user", text.plain(process.user, 40) or "unknown", text.plain(process.user, 40) or "unknown")


def figures(host: WatchedHost) -> dict[str, float]:
    """Return what the history keeps of GPUs with a job: how much each was used, and in how much of the time it was held back."""
    found = {}
    for each in host.gpus:
        if each.judged.verdict != FREE:
            used = {
                **{name: value for name, value in each.gpu.gpm.items() if name in KEPT},
                **{f"held.{why}": 100 * share for why, share in each.gpu.held.items()},
            }
            if "util" in each.gpu.seen:
                used["util"] = each.gpu.number("util")
            found.update({f"watch.{name}/{text.plain(each.gpu.name)}": value for name, value in used.items()})
    return found


def with_late(hosts: Sequence[WatchedHost]) -> list[WatchedHost]:
    """Name for each GPU that waits for a peer the GPUs of its job that do not: these are late."""
    late: dict[tuple[str, Job], list[str]] = {}
    for host in hosts:
        for each in host.gpus:
            if each.judged.rule != LATE:
                for key in _shared(host, each):
                    late.setdefault(key, []).append(f"{host.host} {each.gpu.name} ({TITLES[each.judged.verdict]})")
    return [replace(host, gpus=tuple(_naming(host, each, late) for each in host.gpus)) for host in hosts]


def _shared(host: WatchedHost, each: WatchedGpu) -> list[tuple[str, Job]]:
    """Return what GPUs of one job have in common: Slurm's number on all hosts, else the owner on one, if it uses NCCL."""
    found = [("" if job.kind == "slurm" else host.host, job) for job in each.jobs]
    return [key for key in found if not key[0] or any(process.nccl for process in each.processes)]


def _naming(host: WatchedHost, each: WatchedGpu, late: Mapping[tuple[str, Job], Sequence[str]]) -> WatchedGpu:
    if each.judged.rule != LATE:
        return each
    found = dict.fromkeys(name for key in _shared(host, each) for name in late.get(key, ()))
    return replace(each, judged=replace(each.judged, late=tuple(found)[:MAX_LATE]))
