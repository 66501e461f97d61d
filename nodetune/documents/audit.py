"""Results as JSON data: the published form (schema nodetune.audit/1)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any, TextIO

from nodetune import __version__
from nodetune.api.model import Finding, Fix, FleetFinding, HostResult, fix_of
from nodetune.audit.summary import summarise
from nodetune.checks import fleet_comparisons
from nodetune.remediation import plan as planning
from nodetune.remediation.builders import PlannedChange
from nodetune.remediation.plan import HostPlan

AUDIT_SCHEMA = "nodetune.audit/1"
PLAN_SCHEMA = "nodetune.plan/1"


def audit(results: Iterable[HostResult]) -> dict[str, Any]:
    """Return one object with `schema`, `hosts` (each with name, state and findings), `fleet` and `summary`."""
    kept = list(results)
    hosts = [_host(each) for each in kept]
    return {**head(AUDIT_SCHEMA), "hosts": hosts, "fleet": _fleet(kept), "summary": asdict(summarise(kept))}


def write_audit(results: Sequence[HostResult], stream: TextIO) -> None:
    """Write the document host by host: the text for thousands of hosts at once would take gigabytes."""
    around = {**head(AUDIT_SCHEMA), "hosts": [], "fleet": _fleet(results), "summary": asdict(summarise(results))}
    before, hosts, after = text(around).partition('"hosts": [')
    stream.write(before + hosts)
    known: dict[int, str] = {}  # most hosts share most of their findings, as one object
    stream.writelines(("," if number else "") + _host_text(result, known) for number, result in enumerate(results))
    stream.write(("\n " if results else "") + after)


def _host_text(result: HostResult, known: dict[int, str]) -> str:
    told = _host(replace(result, findings=()))
    before, findings, after = _lower(told, 2).partition('"findings": [')
    for found in result.findings:
        if id(found) not in known:
            known[id(found)] = _lower(_finding(found), 4)
    return (
        before
        + findings
        + ",".join(known[id(found)] for found in result.findings)
        + ("\n   " if result.findings else "")
        + after
    )


def _lower(data: Any, depth: int) -> str:
    """Return the text of a member at the given depth, starting with its line break."""
    lines = "\n" + json.dumps(data, indent=1)
    return lines.replace("\n", "\n" + " " * depth)


def _fleet(results: Iterable[HostResult]) -> dict[str, Any]:
    """Return what differs between hosts, once for all hosts that differ in the same way. `groups` has the cohorts."""
    groups: dict[str, list[str]] = {}
    alike: dict[tuple[str, ...], tuple[FleetFinding, list[str]]] = {}
    for result in results:
        mine = [each for each in result.findings if isinstance(each, FleetFinding)]
        if mine:
            groups.setdefault(mine[0].group, []).append(result.host)
        for each in mine:
            if each.status in ("fail", "waived"):
                key = (each.check, each.status, each.group, each.observed, each.wanted, each.reason)
                alike.setdefault(key, (each, []))[1].append(result.host)
    return {
        "groups": [{"name": name, "hosts": hosts} for name, hosts in groups.items()],
        "findings": [{**_told(found), "hosts": hosts} for found, hosts in alike.values()],
    }


def _told(found: FleetFinding) -> dict[str, Any]:
    taught = fleet_comparisons.every()[found.check]
    words = ("check", "status", "severity", "title", "observed", "wanted", "reason")
    return {
        **{name: getattr(found, name) for name in words},
        **_among(found),
        "why": taught.why,
        "confirm": taught.confirm,
        "next": taught.next,
        "sources": list(taught.sources),
    }


def _among(found: FleetFinding) -> dict[str, Any]:
    """Return the hosts that a host was compared with."""
    return {"group": found.group, "compared": found.compared, "agree": found.agree, "decided": found.decided}


def plan(plans: Sequence[HostPlan]) -> dict[str, Any]:
    """Return the changes of each host as data, the manual steps, and the hosts that were not reached.

    Equal changes of several hosts appear once; each step that is left out has the reason.
    """
    results, by_host = [each.result for each in plans], {each.host: each for each in plans}
    return {
        **head(PLAN_SCHEMA),
        "by_hand": manual(results),
        "not_reached": not_reached(results),
        "steps": [
            {"host": host, "check": found.check, "before": found.observed, "after": planning.after(found)}
            | {**_fix(fix_of(found)), **_files(by_host[host], found, why), "unfixable": why}
            for host, found, why in planning.steps(plans)
        ],
        "work": [
            {"hosts": hosts, "groups": groups}
            for changes, hosts in planning.alike(plans)
            if (groups := [_group(change) for change in changes if change.busy])
        ],
    }


def _group(planned: PlannedChange) -> dict[str, Any]:
    """Return a group of changes without those that stand already."""
    return {**planned.data(), "changes": [dict(change) for change in planned.busy], "notes": list(planned.notes)}


def _files(host: HostPlan, found: Finding, left_out: str) -> dict[str, Any]:
    """Return the files that keep a planned fix; `file` is the first."""
    files = [] if left_out else planning.kept_in(host, found)
    return {"files": files} | ({} if left_out else {"file": files[0] if files else ""})


def manual(results: Iterable[HostResult]) -> list[dict[str, Any]]:
    """Return the manual steps."""
    return [
        {"check": check, "hosts": hosts, "manual": found.manual}
        for check, (found, hosts) in planning.manual_steps(results).items()
    ]


def not_reached(results: Iterable[HostResult]) -> list[dict[str, str]]:
    return [{"name": each.host, "state": each.state, "message": each.message} for each in results if each.state != "ok"]


def text(data: Any) -> str:
    return json.dumps(data, indent=1, sort_keys=False) + "\n"


def head(schema: str) -> dict[str, Any]:
    """Return the first keys of every document."""
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
    if found.part_of:
        data["part_of"] = found.part_of
    among = {"fleet": _among(found)} if isinstance(found, FleetFinding) else {}
    return {**data, "fix": _fix(found.fix) if found.fix else None, **among}


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
