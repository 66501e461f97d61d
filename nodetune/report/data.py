"""Results as JSON data: the published form (schema nodetune.audit/1)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from nodetune import __version__
from nodetune.model import Finding, Fix, HostResult, Step
from nodetune.outcome import summarise

AUDIT_SCHEMA = "nodetune.audit/1"
PLAN_SCHEMA = "nodetune.plan/1"


def audit(results: Iterable[HostResult]) -> dict[str, Any]:
    """One object with `schema`, `hosts` (a list; each with name, state and findings) and `summary`."""
    kept = list(results)
    return {**_head(AUDIT_SCHEMA), "hosts": [_host(each) for each in kept], "summary": asdict(summarise(kept))}


def plan(
    steps: Iterable[Step], by_hand: Mapping[str, tuple[Finding, list[str]]], results: Iterable[HostResult]
) -> dict[str, Any]:
    """The steps of a plan as data, what only a person can do, and the hosts that were not reached."""
    return {
        **_head(PLAN_SCHEMA),
        "by_hand": [
            {"check": check, "hosts": hosts, "manual": found.manual} for check, (found, hosts) in by_hand.items()
        ],
        "not_reached": [
            {"name": each.host, "state": each.state, "message": each.message} for each in results if each.state != "ok"
        ],
        "steps": [
            {"host": step.host, "check": step.check, "before": step.before, "after": step.after, **_fix(step.fix)}
            for step in steps
        ],
    }


def text(data: Any) -> str:
    return json.dumps(data, indent=1, sort_keys=False) + "\n"


def _head(schema: str) -> dict[str, Any]:
    return {"schema": schema, "nodetune": __version__, "time": int(time.time())}


def _host(result: HostResult) -> dict[str, Any]:
    return {
        "name": result.host,
        "state": result.state,
        "message": result.message,
        "profile": result.profile,
        "profile_reason": result.profile_reason,
        "seconds": round(result.seconds, 3),
        "findings": [_finding(each) for each in result.findings],
    }


def _finding(found: Finding) -> dict[str, Any]:
    data = {
        "check": found.check,
        "status": found.status,
        "severity": found.severity,
        "title": found.title,
        "observed": found.observed,
        "wanted": found.wanted,
        "reason": found.reason,
        "gates": found.gates,
        "subjects": dict(found.subjects),
        "odd": list(found.odd),
        "manual": found.manual,
    }
    return {**data, "fix": _fix(found.fix) if found.fix else None}


def _fix(fix: Fix) -> dict[str, Any]:
    return {
        "kind": fix.kind,
        "target": fix.target,
        "value": fix.value,
        "disruption": fix.disruption,
        "file": fix.file,
        "subjects": list(fix.subjects),
        "unit": fix.unit,
        "params": dict(fix.params),
    }
