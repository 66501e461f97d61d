"""Late ranks of jobs, and missing ranks of a running one, as JSON data (schemas nodetune.slow-ranks/1, nodetune.ras/1)."""

from typing import Any

from nodetune.api import conclusion_json
from nodetune.foundation.json_document import head
from nodetune.jobs.late_ranks.conclude import concluded
from nodetune.jobs.late_ranks.model import ComparedJob, LatePart, RasRank, SlowRanks
from nodetune.jobs.late_ranks.ras_status import RasFinding, RasStatus

RANKS_SCHEMA, RAS_SCHEMA = "nodetune.slow-ranks/1", "nodetune.ras/1"


def document(result: SlowRanks | RasStatus) -> dict[str, Any]:
    """Return the document."""
    data = _ras(result) if isinstance(result, RasStatus) else _ranks(result)
    return {**data, **conclusion_json.members(concluded(result, data["time"]))}


def _ranks(result: SlowRanks) -> dict[str, Any]:
    return {
        **head(RANKS_SCHEMA),
        "late": [
            {"cause": cause.cause, "why": cause.why, "parts": [_part(part) for part in cause.parts]}
            for cause in result.causes
        ],
        "jobs": [_job(job) for job in result.jobs],
        "notes": list(result.notes),
    }


def _part(part: LatePart) -> dict[str, Any]:
    lateness = part.lateness
    return {
        "job": part.job,
        "host": part.host,
        "whole_host": part.is_host,
        "ranks": list(part.ranks),
        "world": part.world,
        "local_ranks": list(part.local),
        "wait_us": round(lateness.wait, 1),
        "share": round(lateness.share, 4),
        "last": round(lateness.last, 4),
        "calls": lateness.calls,
        "collective": lateness.kind.collective,
        "bytes": lateness.kind.size,
        "communicator": lateness.communicator,
    }


def _job(job: ComparedJob) -> dict[str, Any]:
    return {
        "name": job.name,
        "hosts": list(job.hosts),
        "ranks": job.ranks,
        "judged": job.compared,
        "undecided": list(job.undecided),
        "not_judged": list(job.not_compared),
    }


def _ras(result: RasStatus) -> dict[str, Any]:
    return {
        **head(RAS_SCHEMA),
        "address": result.address,
        "problem": result.problem,
        "nccl_version": result.version,
        "communicators": result.communicators,
        "findings": [_finding(finding) for finding in result.findings],
        "notes": list(result.notes),
        "text": result.text,
    }


def _finding(finding: RasFinding) -> dict[str, Any]:
    return {
        "kind": finding.kind,
        "communicator": finding.communicator,
        "size": finding.size,
        "ranks": [_rank(rank) for rank in finding.ranks],
        "why": finding.why,
    }


def _rank(rank: RasRank) -> dict[str, Any]:
    return {"rank": rank.rank, "host": rank.host, "gpu": rank.gpu, "pid": rank.pid, "counts": dict(rank.counts)}
