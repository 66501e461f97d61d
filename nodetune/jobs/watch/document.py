"""A watch as JSON data (schema nodetune.watch/1)."""

from __future__ import annotations

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
        return sum(each.judged.wasted for _, each in self.gpus)


def document(watched: Sequence[WatchedHost]) -> dict[str, Any]:
    """Return the document of a watch."""
    verdicts = Counter(gpu.judged.verdict for host in watched for gpu in host.gpus)
    verdicts[UNKNOWN] += sum(len(host.unread) for host in watched)
    told = head(WATCH_SCHEMA)
    return {
        **told,
        "hosts": [_host(each) for each in watched],
        "jobs": [_job(each) for each in jobs(watched)],
        "summary": {
            "hosts": len(watched),
            "reached": sum(each.state == "ok" for each in watched),
            "gpus": verdicts.total(),
            "verdicts": {name: verdicts[name] for name in TITLES},
        },
        **conclusion_json.members(concluded(watched, {}, told["time"])),
    }


def jobs(watched: Iterable[WatchedHost]) -> list[JobUse]:
    """Return the jobs with their GPUs, those first that waste most. A Slurm job is one on all hosts, others are one a host."""
    found: dict[tuple[str, Job], list[tuple[str, WatchedGpu]]] = {}
    for host in watched:
        for gpu in host.gpus:
            for job in gpu.jobs:
                found.setdefault(("" if job.kind == "slurm" else host.host, job), []).append((host.host, gpu))
    uses = [JobUse(job, tuple(gpus)) for (_, job), gpus in found.items()]
    return sorted(uses, key=lambda each: (-each.wasted, each.job.kind, each.job.id))


def _host(host: WatchedHost) -> dict[str, Any]:
    return {
        "name": host.host,
        "state": host.state,
        "message": host.message,
        "seconds": host.seconds,
        "gpus": [_gpu(each) for each in host.gpus],
        "unread": dict(host.unread),
        "load": dict(host.load),
    }


def _gpu(each: WatchedGpu) -> dict[str, Any]:
    return {
        "gpu": each.gpu.name,
        "model": each.gpu.model,
        "verdict": each.judged.verdict,
        "rule": each.judged.rule,
        "evidence": list(each.judged.evidence),
        "late": list(each.judged.late),
        "jobs": [_named(job) for job in each.jobs],
        "gpm": dict(each.gpu.gpm) or None,
        "no_gpm": each.gpu.no_gpm,
        "held": dict(each.gpu.held),
        "figures": {name: value for name, value in each.gpu.seen.items() if name not in NOT_FIGURES},
        "processes": [_process(process) for process in each.processes],
    }


def _process(process: Process) -> dict[str, Any]:
    return {
        "pid": process.pid,
        "name": process.name,
        "user": process.user,
        "on_gpu": process.pid == process.above,
        "cores": process.cores,
        "read": process.read,
        "doing": dict(process.doing),
        "ended": process.ended,
    }


def _named(job: Job) -> dict[str, Any]:
    return {"kind": job.kind, "id": job.id, "user": job.user}


def _job(use: JobUse) -> dict[str, Any]:
    return {
        **_named(use.job),
        "gpus": [{"host": host, "gpu": gpu.gpu.name, "verdict": gpu.judged.verdict} for host, gpu in use.gpus],
        "wasted": use.wasted,
    }
