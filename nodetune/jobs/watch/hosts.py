"""Turn the facts of a host into judged GPUs, and name the GPU that others wait for. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from nodetune.api.model import Absent, Each, HostFacts, HostResult, Unread, Value
from nodetune.foundation import text
from nodetune.jobs.watch.diagnose import diagnose
from nodetune.jobs.watch.model import (
    FREE,
    LATE,
    TITLES,
    UNKNOWN,
    Diagnosis,
    GpuUsage,
    Job,
    Process,
    WatchedGpu,
    WatchedHost,
)

GPUS, PROCESSES, HOST, USERS = "watch.gpus", "watch.processes", "watch.host", "watch.users"
SECONDS = "watch.seconds."
MAX_LATE = 8
KEPT = ("graphics", "sm", "tensor", "dram", "pcie_rx", "pcie_tx", "nvlink_rx", "nvlink_tx")
"""Figures of GPM that the history keeps."""
AVERAGES = ("util", "memory_gib")
"""Other averages that it keeps."""


def names(seconds: int) -> set[str]:
    """Return the facts that a watch of this length needs."""
    return {GPUS, PROCESSES, HOST, USERS, f"{SECONDS}{seconds}"}


def diagnose_host(result: HostResult) -> WatchedHost:
    """Judge the GPUs of a host by its facts."""
    facts = result.facts
    if result.state != "ok" or facts is None:
        return WatchedHost(result.host, result.state, result.message)
    fact = facts.get(GPUS)
    if isinstance(fact, Absent):
        return WatchedHost(result.host, "ok", fact.reason)
    if not isinstance(fact, Each):
        return WatchedHost(result.host, "ok", "", unread={"GPUs": _why(fact)})
    processes = _processes(facts)
    gpus = [_gpu(name, gpu_fact.value, processes) for name, gpu_fact in fact.of.items() if isinstance(gpu_fact, Value)]
    unread = {name: _why(gpu_fact) for name, gpu_fact in fact.of.items() if not isinstance(gpu_fact, Value)}
    return WatchedHost(result.host, "ok", result.message, _seconds(facts), tuple(gpus), unread, _value(facts, HOST))


def _why(fact: object) -> str:
    return fact.reason if isinstance(fact, Unread | Absent) else "not understood"


def _value(facts: HostFacts, name: str) -> Mapping[str, Any]:
    fact = facts.get(name)
    return fact.value if isinstance(fact, Value) else {}


def _seconds(facts: HostFacts) -> float:
    seconds = [fact.value for name, fact in facts.facts.items() if name.startswith(SECONDS) and isinstance(fact, Value)]
    return float(seconds[0]) if seconds else 0.0


def _processes(facts: HostFacts) -> list[Process]:
    users = _value(facts, USERS)
    return [
        Process(
            int(pid),
            process["name"],
            "" if process["uid"] is None else str(users.get(str(process["uid"]), process["uid"])),
            process["above"],
            process["job"],
            process["cores"],
            process["delay"] or 0.0,
            process["throttled"] or 0.0,
            process["read"] or 0.0,
            process["doing"],
            process["nccl"],
            process["ended"],
            tuple(process["gpus"]),
        )
        for pid, process in _value(facts, PROCESSES).items()
        if pid.isdecimal()
    ]


def _gpu(name: str, counters: Mapping[str, Any], processes: Sequence[Process]) -> WatchedGpu:
    gpu = GpuUsage(
        name, counters["name"], counters["gpm"] or {}, counters.get("no_gpm", ""), counters, counters["held"]
    )
    roots = {process.pid for process in processes if name in process.gpus}
    own_processes = tuple(process for process in processes if process.gpu_pid in roots)
    if not own_processes and counters["pids"]:
        diagnosis = Diagnosis(UNKNOWN, "process-new", ("its processes began during the watch, or are not visible",))
    else:
        diagnosis = _ended(own_processes) or diagnose(gpu, own_processes)
    return WatchedGpu(gpu, own_processes, tuple(dict.fromkeys(_job(process) for process in own_processes)), diagnosis)


def _ended(own_processes: Sequence[Process]) -> Diagnosis | None:
    """Return the verdict if a process left the GPU meanwhile: averages over its end describe neither time."""
    ended = [process.pid for process in own_processes if process.ended and process.pid == process.gpu_pid]
    if not ended:
        return None
    return Diagnosis(UNKNOWN, "process-ended", (f"process {ended[0]} ended during the watch",))


def _job(process: Process) -> Job:
    for kind in ("slurm", "container", "pod"):
        if kind in process.job:
            return Job(kind, text.plain(process.job[kind], 80), text.plain(process.user, 40))
    return Job("user", text.plain(process.user, 40) or "unknown", text.plain(process.user, 40) or "unknown")


def figures(host: WatchedHost) -> dict[str, float]:
    """Return what the history keeps of GPUs with a job: how much each was used, and in how much of the time it was held back."""
    kept = {}
    for watched_gpu in host.gpus:
        if watched_gpu.diagnosis.verdict != FREE:
            used = {
                **{name: value for name, value in watched_gpu.gpu.gpm.items() if name in KEPT},
                **{f"held.{why}": 100 * share for why, share in watched_gpu.gpu.throttling.items()},
            }
            used.update((name, watched_gpu.gpu.number(name)) for name in AVERAGES if name in watched_gpu.gpu.counters)
            kept.update({f"watch.{name}/{text.plain(watched_gpu.gpu.name)}": value for name, value in used.items()})
    return kept


def with_late(hosts: Sequence[WatchedHost]) -> list[WatchedHost]:
    """Name for each GPU that waits for a peer the GPUs of its job that do not: these are late."""
    late: dict[tuple[str, Job], list[str]] = {}
    for host in hosts:
        for watched_gpu in host.gpus:
            if watched_gpu.diagnosis.rule != LATE:
                for key in _job_keys(host, watched_gpu):
                    late.setdefault(key, []).append(
                        f"{host.host} {watched_gpu.gpu.name} ({TITLES[watched_gpu.diagnosis.verdict]})"
                    )
    return [
        replace(host, gpus=tuple(_with_late_peers(host, watched_gpu, late) for watched_gpu in host.gpus))
        for host in hosts
    ]


def _job_keys(host: WatchedHost, watched_gpu: WatchedGpu) -> list[tuple[str, Job]]:
    """Return what GPUs of one job have in common: Slurm's number on all hosts, else the owner on one, if it uses NCCL."""
    keys = [("" if job.kind == "slurm" else host.host, job) for job in watched_gpu.jobs]
    return [key for key in keys if not key[0] or any(process.nccl for process in watched_gpu.processes)]


def _with_late_peers(
    host: WatchedHost, watched_gpu: WatchedGpu, late: Mapping[tuple[str, Job], Sequence[str]]
) -> WatchedGpu:
    if watched_gpu.diagnosis.rule != LATE:
        return watched_gpu
    names = dict.fromkeys(name for key in _job_keys(host, watched_gpu) for name in late.get(key, ()))
    return replace(watched_gpu, diagnosis=replace(watched_gpu.diagnosis, late=tuple(names)[:MAX_LATE]))
