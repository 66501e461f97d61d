"""The plan as JSON data (schema nodetune.plan/1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from nodetune.api.model import Finding, HostResult, fix_of
from nodetune.audit.document import fix_data, not_reached
from nodetune.foundation import json_document
from nodetune.remediation import plan as planning
from nodetune.remediation.host_changes import PlannedChange
from nodetune.remediation.plan import HostPlan

PLAN_SCHEMA = "nodetune.plan/1"


def plan(plans: Sequence[HostPlan]) -> dict[str, Any]:
    """Return the changes of each host as data, the manual steps, and what was not judged or not reached.

    Equal changes of several hosts appear once; each step that is left out has the reason.
    """
    results, by_host = [each.result for each in plans], {each.host: each for each in plans}
    return {
        **json_document.head(PLAN_SCHEMA),
        "by_hand": manual(results),
        "not_reached": not_reached(results),
        "unknown": unknown(results),
        "steps": [
            {"host": host, "check": found.check, "before": found.observed, "after": planning.after(found)}
            | {**fix_data(fix_of(found)), **_kept_in(by_host[host], found, why), "unfixable": why}
            for host, found, why in planning.steps(plans)
        ],
        "work": [
            {"hosts": hosts, "groups": groups}
            for changes, hosts in planning.alike(plans)
            if (groups := [_group(change) for change in changes if change.busy])
        ],
    }


def _group(planned: PlannedChange) -> dict[str, Any]:
    """Return a group of changes without those that are already done."""
    return {**planned.data(), "changes": [dict(change) for change in planned.busy], "notes": list(planned.notes)}


def _kept_in(host: HostPlan, found: Finding, left_out: str) -> dict[str, Any]:
    """Return the files that keep a planned fix; `file` is the first."""
    files = [] if left_out else planning.kept_in(host, found)
    return {"files": files} | ({} if left_out else {"file": files[0] if files else ""})


def manual(results: Iterable[HostResult]) -> list[dict[str, Any]]:
    """Return the manual steps."""
    return [
        {"check": check, "hosts": hosts, "manual": found.manual}
        for check, (found, hosts) in planning.manual_steps(results).items()
    ]


def unknown(results: Iterable[HostResult]) -> list[dict[str, Any]]:
    """Return the checks that could not be judged."""
    return [
        {"check": check, "reason": reason, "hosts": hosts}
        for (check, reason), hosts in planning.unknown(results).items()
    ]
