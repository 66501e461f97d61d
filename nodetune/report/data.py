"""Results as JSON data: the published form (schema nodetune.audit/1)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, TextIO

from nodetune import __version__, fleet
from nodetune.model import Finding, Fix, HostResult, Step
from nodetune.outcome import summarise
from nodetune.plan import Built, alike

AUDIT_SCHEMA = "nodetune.audit/1"
PLAN_SCHEMA = "nodetune.plan/1"


def audit(results: Iterable[HostResult]) -> dict[str, Any]:
    """One object with `schema`, `hosts` (a list; each with name, state and findings), `fleet` and `summary`."""
    kept = list(results)
    hosts = [_host(each) for each in kept]
    return {**head(AUDIT_SCHEMA), "hosts": hosts, "fleet": _fleet(kept), "summary": asdict(summarise(kept))}


def write_audit(results: Sequence[HostResult], stream: TextIO) -> None:
    """The text of the same, host by host: of thousands of hosts all at once would take gigabytes."""
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
    """The text of a member of something else, so deep in it, from its line break on."""
    lines = "\n" + json.dumps(data, indent=1)
    return lines.replace("\n", "\n" + " " * depth)


def _fleet(results: Iterable[HostResult]) -> dict[str, Any]:
    """What differs between hosts, once for all hosts that are odd in the same way; `groups`: who was compared with whom."""
    groups: dict[str, list[str]] = {}
    alike: dict[tuple[str, ...], tuple[fleet.FleetFinding, list[str]]] = {}
    for result in results:
        mine = [each for each in result.findings if isinstance(each, fleet.FleetFinding)]
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


def _told(found: fleet.FleetFinding) -> dict[str, Any]:
    taught = fleet.every()[found.check]
    words = ("check", "status", "severity", "title", "observed", "wanted", "reason")
    return {
        **{name: getattr(found, name) for name in words},
        **_among(found),
        "why": taught.why,
        "confirm": taught.confirm,
        "next": taught.next,
        "sources": list(taught.sources),
    }


def _among(found: fleet.FleetFinding) -> dict[str, Any]:
    """Who a host was held against."""
    return {"group": found.group, "compared": found.compared, "agree": found.agree, "decided": found.decided}


def plan(
    steps: Iterable[Step],
    by_hand: Mapping[str, tuple[Finding, list[str]]],
    results: Iterable[HostResult],
    built: Mapping[str, Built] | None = None,
) -> dict[str, Any]:
    """The steps of a plan as data, what only a person can do, and the hosts that were not reached.

    `built` (host → how it is carried out) adds the changes themselves, once for all hosts where they are the same, and
    to each step that cannot be carried out the reason.
    """
    unfixable = {(step.host, step.check): why for each in (built or {}).values() for step, why in each.unfixable}
    return {
        **head(PLAN_SCHEMA),
        "by_hand": [
            {"check": check, "hosts": hosts, "manual": found.manual} for check, (found, hosts) in by_hand.items()
        ],
        "not_reached": [
            {"name": each.host, "state": each.state, "message": each.message} for each in results if each.state != "ok"
        ],
        "steps": [
            {"host": step.host, "check": step.check, "before": step.before, "after": step.after, **_fix(step.fix)}
            | {"unfixable": unfixable.get((step.host, step.check), "")}
            for step in steps
        ],
        "work": [
            {"hosts": hosts, "groups": [{**group.data(), "notes": list(group.notes)} for group in groups]}
            for groups, hosts in alike(built or {})
        ],
    }


def text(data: Any) -> str:
    return json.dumps(data, indent=1, sort_keys=False) + "\n"


def head(schema: str) -> dict[str, Any]:
    """What every document begins with."""
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
    among = {"fleet": _among(found)} if isinstance(found, fleet.FleetFinding) else {}
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
