"""The output of `nodetune guard` as JSON data: schemas nodetune.slurm-status/1, slurm-diff/1, slurm-resume/1."""

from collections.abc import Iterable, Mapping
from typing import Any

from nodetune.api import conclusion_json
from nodetune.api.model import HostResult
from nodetune.audit.document import not_reached
from nodetune.foundation import json_document
from nodetune.guard.deploy.conclude import concluded
from nodetune.guard.deploy.nodes import GuardedNode
from nodetune.guard.deploy.policy import PolicyDiff
from nodetune.guard.deploy.resume import Fate
from nodetune.guard.deploy.status import Guard, Status

STATUS, DIFF, RESUME = "nodetune.slurm-status/1", "nodetune.slurm-diff/1", "nodetune.slurm-resume/1"


def status(found: Iterable[Status]) -> str:
    nodes, told = list(found), json_document.head(STATUS)
    members = conclusion_json.members(concluded(nodes, told["time"]))
    return json_document.text({**told, "nodes": [_status(each) for each in nodes], **members})


def _status(one: Status) -> dict[str, Any]:
    return {
        "name": one.name,
        "state": one.state,
        "out_of_service": one.out_of_service,
        "reason": one.reason,
        "reached": one.guard is not None,
        "message": one.problem,
        "guard": _guard(one.guard) if one.guard else None,
    }


def _guard(guard: Guard) -> dict[str, Any]:
    return {
        "installed": dict(guard.installed) or None,
        "last_run": _last_run(*guard.last_run) if guard.last_run else None,
        "last_reason": guard.last_reason,
        "inconclusive_runs": guard.inconclusive_runs,
        "blind_runs": guard.inconclusive_runs,
        "drain_is_ours": guard.ours,
        "held": {"job": guard.held[0], "reason": guard.held[1]} if guard.held else None,
    }


def _last_run(time: int, job: str, verdict: str) -> dict[str, Any]:
    """Return the last run. Until 0.3.0 `verdict` has the word of 0.1.0 for inconclusive."""
    said = verdict.replace("inconclusive", "blind")
    return {"time": time, "job": job, "verdict": said, "inconclusive": "inconclusive" in verdict}


def diff(nodes: Iterable[GuardedNode], found: Mapping[str, PolicyDiff], lost: Iterable[HostResult]) -> str:
    told = [_difference(node, found[node.name]) for node in nodes]
    return json_document.text({**json_document.head(DIFF), "hosts": told, "not_reached": not_reached(lost)})


def _difference(node: GuardedNode, found: PolicyDiff) -> dict[str, Any]:
    return {
        "name": node.name,
        "installed": bool(node.policy),
        "newly_gates": list(found.gates),
        "gates_no_more": list(found.gates_no_more),
        "judged_otherwise": list(found.judged_otherwise),
        "settings": [{"name": name, "before": before, "after": after} for name, before, after in found.settings],
        "failing": [
            {"check": each.check, "severity": each.severity, "observed": each.observed, "subjects": each.subjects}
            for each in node.failing()
        ],
    }


def resume(found: Iterable[Fate], dry_run: bool) -> str:
    told = [
        {"name": each.name, "state": each.state, "why": each.why, "judged_by": each.judged_by, "check": each.check}
        for each in found
    ]
    return json_document.text({**json_document.head(RESUME), "dry_run": dry_run, "nodes": told})
