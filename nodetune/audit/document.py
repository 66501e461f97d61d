"""Results as JSON data: the published form (schema nodetune.audit/1)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, TextIO

from nodetune.api import conclusion_json
from nodetune.api.conclusion import Examination
from nodetune.api.model import Finding, Fix, FleetFinding, HostResult
from nodetune.audit import conclude
from nodetune.audit.summary import summarise, unread
from nodetune.checks import fleet_comparisons
from nodetune.foundation import json_document

if TYPE_CHECKING:
    from nodetune.audit.scorecards import Scorecard

AUDIT_SCHEMA = "nodetune.audit/1"
CONCLUDED = ',\n "conclusions": [\n'
"""The text before the conclusions, which follow everything else about hosts."""

WORDS = ("check", "status", "severity", "title", "observed", "wanted", "reason")
"""The texts of every finding."""


def audit(results: Iterable[HostResult]) -> dict[str, Any]:
    """Return one object with `schema`, `hosts` (each with name, state and findings), `fleet` and `summary`."""
    kept = list(results)
    hosts = [_host(each) for each in kept]
    told = json_document.head(AUDIT_SCHEMA)
    return {
        **told,
        "hosts": hosts,
        "fleet": _fleet(kept),
        "summary": asdict(summarise(kept)),
        **conclusion_json.members(conclude.concluded(kept, told["time"])),
    }


def write_audit(results: Sequence[HostResult], stream: TextIO, against: Scorecard | None = None) -> None:
    """Write the document host by host: the text for thousands of hosts at once would take gigabytes.

    With a scorecard, `against` says which of its criteria the hosts meet.
    """
    around: dict[str, Any] = {
        **json_document.head(AUDIT_SCHEMA),
        "hosts": [],
        "fleet": _fleet(results),
        "summary": asdict(summarise(results)),
    }
    if against:
        from nodetune.audit import scorecard_status  # few audits are compared with a scorecard

        around["against"] = scorecard_status.score(against, results).document()
    before, hosts, after = json_document.text(around).partition('"hosts": [')
    stream.write(before + hosts)
    known: dict[int, str] = {}  # most hosts share most of their findings, as one object
    stream.writelines(("," if number else "") + _host_text(result, known) for number, result in enumerate(results))
    stream.write(("\n " if results else "") + after.removesuffix("\n}\n"))
    stream.writelines(_concluded(results, around["time"]))
    stream.write("\n}\n")


def _concluded(results: Sequence[HostResult], now: int) -> Iterator[str]:
    """Yield the members of conclusions, one a line: document_reader.py ends where they begin."""
    looked: list[Examination] = []
    separator = CONCLUDED
    for found in conclude.by_host(results, now):
        looked += found.examinations
        for each in found.conclusions:
            yield separator + "  " + json.dumps(conclusion_json.data(each))
            separator = ",\n"
    yield "\n ]" if separator != CONCLUDED else f"{CONCLUDED} ]"
    lines = ",\n".join("  " + json.dumps(each) for each in conclusion_json.examinations_data(looked))
    yield f',\n "examined": [\n{lines}\n ]' if lines else ',\n "examined": []'


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
    return {
        **{name: getattr(found, name) for name in WORDS},
        **_among(found),
        "why": taught.why,
        "confirm": taught.confirm,
        "next": taught.next,
        "sources": list(taught.sources),
    }


def _among(found: FleetFinding) -> dict[str, Any]:
    """Return the hosts that a host was compared with."""
    return {"group": found.group, "compared": found.compared, "agree": found.agree, "decided": found.decided}


def not_reached(results: Iterable[HostResult]) -> list[dict[str, str]]:
    return [{"name": each.host, "state": each.state, "message": each.message} for each in results if each.state != "ok"]


def _host(result: HostResult) -> dict[str, Any]:
    return {
        "name": result.host,
        "state": result.state,
        "message": result.message,
        "profile": result.profile,
        "profile_reason": result.profile_reason,
        "seconds": round(result.seconds, 3),
        "devices": [asdict(each) for each in result.devices],
        **({"since": dict(result.since)} if result.since else {}),
        **({"off": list(result.off)} if result.off else {}),
        "findings": [_finding(each) for each in result.findings],
    }


def _finding(found: Finding) -> dict[str, Any]:
    data = {
        **{name: getattr(found, name) for name in WORDS},
        "gates": found.gates,
        "subjects": dict(found.subjects),
        "odd": list(found.odd),
        "manual": found.manual,
    }
    if found.status in ("fail", "waived"):
        data |= {"who": found.who, "cost": found.cost, "name": found.name}
    if found.status == "unknown":
        data["unread"] = unread(found.reason)
    if found.part_of:
        data["part_of"] = found.part_of
    if found.reported_by:
        data["reported_by"] = dict(found.reported_by)
    among = {"fleet": _among(found)} if isinstance(found, FleetFinding) else {}
    return {**data, "fix": fix_data(found.fix) if found.fix else None, **among}


def fix_data(fix: Fix) -> dict[str, Any]:
    return {**vars(fix), "subjects": list(fix.subjects), "params": dict(fix.params)}
