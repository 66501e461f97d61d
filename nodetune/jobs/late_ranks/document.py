"""Late ranks of jobs, and missing ranks of a running one, as JSON data (schemas nodetune.slow-ranks/1, nodetune.ras/1)."""

from __future__ import annotations

from typing import Any

from nodetune.api import conclusion_json
from nodetune.foundation.json_document import head
from nodetune.jobs.late_ranks.conclude import concluded
from nodetune.jobs.late_ranks.model import JudgedJob, LatePart, RankOfJob, SlowRanks
from nodetune.jobs.late_ranks.ras_judge import RasFinding, RasStatus

RANKS_SCHEMA, RAS_SCHEMA = "nodetune.slow-ranks/1", "nodetune.ras/1"


def document(found: SlowRanks | RasStatus) -> dict[str, Any]:
    """Return the document."""
    told = _ras(found) if isinstance(found, RasStatus) else _ranks(found)
    return {**told, **conclusion_json.members(concluded(found, told["time"]))}


def _ranks(found: SlowRanks) -> dict[str, Any]:
    return {
        **head(RANKS_SCHEMA),
        "late": [
            {"cause": each.cause, "why": each.why, "parts": [_part(part) for part in each.parts]}
            for each in found.conclusions
        ],
        "jobs": [_job(each) for each in found.jobs],
        "notes": list(found.notes),
    }


def _part(each: LatePart) -> dict[str, Any]:
    seen = each.seen
    return {
        "job": each.job,
        "host": each.host,
        "whole_host": each.is_host,
        "ranks": list(each.ranks),
        "world": each.world,
        "local_ranks": list(each.local),
        "wait_us": round(seen.wait, 1),
        "share": round(seen.share, 4),
        "last": round(seen.last, 4),
        "calls": seen.calls,
        "collective": seen.kind.collective,
        "bytes": seen.kind.size,
        "communicator": seen.communicator,
    }


def _job(each: JudgedJob) -> dict[str, Any]:
    return {
        "name": each.name,
        "hosts": list(each.hosts),
        "ranks": each.ranks,
        "judged": each.judged,
        "undecided": list(each.undecided),
        "not_judged": list(each.unjudged),
    }


def _ras(found: RasStatus) -> dict[str, Any]:
    return {
        **head(RAS_SCHEMA),
        "address": found.address,
        "problem": found.problem,
        "nccl_version": found.version,
        "communicators": found.communicators,
        "findings": [_finding(each) for each in found.findings],
        "notes": list(found.notes),
        "text": found.text,
    }


def _finding(each: RasFinding) -> dict[str, Any]:
    return {
        "kind": each.kind,
        "communicator": each.communicator,
        "size": each.size,
        "ranks": [_rank(rank) for rank in each.ranks],
        "why": each.why,
    }


def _rank(each: RankOfJob) -> dict[str, Any]:
    return {"rank": each.rank, "host": each.host, "gpu": each.gpu, "pid": each.pid, "counts": dict(each.counts)}
