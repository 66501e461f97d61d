"""A watch as JSON data (schema nodetune.watch/1)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from nodetune.api import conclusion_json
from nodetune.foundation.json_document import head
from nodetune.jobs.watch.conclude import concluded
from nodetune.jobs.watch.model import TITLES, UNKNOWN, Job, Process, WatchedGpu, WatchedHost

WATCH_SCHEMA = "nodetune.watch/1"
NOT_FIGURES = ("name", "pids", "gpm", "no_gpm", "held")


@dataclass(frozen=True)
class JobUse:
    """A job and the GPUs on which it runs, as (host, GPU)."""

    job: Job
    gpus: tuple[tuple[str, WatchedGpu], ...]

    @property
    def wasted(self) -> int:
        """The number of its GPUs that it does not use well."""
        return sum(gpu.diagnosis.wasted for _, gpu in self.gpus)


def document(watched: Sequence[WatchedHost]) -> dict[str, Any]:
    """Return the document of a watch."""
    base = head(WATCH_SCHEMA)
    return {
        **base,
        "hosts": [_host(host) for host in watched],
        "jobs": [_job(use) for use in jobs(watched)],
        "summary": summary(watched),
        **conclusion_json.members(concluded(watched, {}, base["time"])),
    }


def summary(watched: Sequence[WatchedHost]) -> dict[str, Any]:
    """Return the number of hosts and GPUs, and of the GPUs by verdict."""
    verdicts = Counter(gpu.diagnosis.verdict for host in watched for gpu in host.gpus)
    verdicts[UNKNOWN] += sum(len(host.unread) for host in watched)
    return {
        "hosts": len(watched),
        "reached": sum(host.state == "ok" for host in watched),
        "gpus": verdicts.total(),
        "verdicts": {name: verdicts[name] for name in TITLES},
    }


def jobs(watched: Iterable[WatchedHost]) -> list[JobUse]:
    """Return the jobs with their GPUs, those first that waste most. A Slurm job is one on all hosts, others are one a host."""
    by_job: dict[tuple[str, Job], list[tuple[str, WatchedGpu]]] = {}
    for host in watched:
        for gpu in host.gpus:
            for job in gpu.jobs:
                by_job.setdefault(("" if job.kind == "slurm" else host.host, job), []).append((host.host, gpu))
    uses = [JobUse(job, tuple(gpus)) for (_, job), gpus in by_job.items()]
    return sorted(uses, key=lambda use: (-use.wasted, use.job.kind, use.job.id))


def _host(host: WatchedHost) -> dict[str, Any]:
    return {
        "name": host.host,
        "state": host.state,
        "message": host.message,
        "seconds": host.seconds,
        "gpus": [_gpu(gpu) for gpu in host.gpus],
        "unread": dict(host.unread),
        "load": dict(host.load),
    }


def _gpu(watched_gpu: WatchedGpu) -> dict[str, Any]:
    return {
        "gpu": watched_gpu.gpu.name,
        "model": watched_gpu.gpu.model,
        "verdict": watched_gpu.diagnosis.verdict,
        "rule": watched_gpu.diagnosis.rule,
        "evidence": list(watched_gpu.diagnosis.evidence),
        "late": list(watched_gpu.diagnosis.late),
        "jobs": [_named(job) for job in watched_gpu.jobs],
        "gpm": dict(watched_gpu.gpu.gpm) or None,
        "no_gpm": watched_gpu.gpu.no_gpm,
        "held": dict(watched_gpu.gpu.throttling),
        "figures": {name: value for name, value in watched_gpu.gpu.counters.items() if name not in NOT_FIGURES},
        "processes": [_process(process) for process in watched_gpu.processes],
    }


def _process(process: Process) -> dict[str, Any]:
    return {
        "pid": process.pid,
        "name": process.name,
        "user": process.user,
        "on_gpu": process.pid == process.gpu_pid,
        "cores": process.cores,
        "read": process.read,
        "doing": dict(process.activity),
        "ended": process.ended,
    }


def _named(job: Job) -> dict[str, Any]:
    return {"kind": job.kind, "id": job.id, "user": job.user}


def _job(use: JobUse) -> dict[str, Any]:
    return {
        **_named(use.job),
        "gpus": [{"host": host, "gpu": gpu.gpu.name, "verdict": gpu.diagnosis.verdict} for host, gpu in use.gpus],
        "wasted": use.wasted,
    }
