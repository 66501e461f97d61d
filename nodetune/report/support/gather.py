"""Gather what is known of a host: its facts and findings, figures, the history, and the runs that changed it."""

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nodetune.api import conclusion_json
from nodetune.api.conclusion import REPAIR
from nodetune.api.model import Finding, HostFacts, HostResult
from nodetune.audit import explain
from nodetune.audit import run as audit_run
from nodetune.audit.auditor import Auditor
from nodetune.audit.selection import Selection
from nodetune.facts import catalogue, document
from nodetune.foundation import UserError, json_document, sealed
from nodetune.foundation.stage_output import Show
from nodetune.history import timeline
from nodetune.history.connection import HistoryError, PlaceError
from nodetune.history.history import History
from nodetune.history.kinds import FIGURES
from nodetune.remediation.runs import earlier_runs
from nodetune.report.support import vendor_facts
from nodetune.report.support.request import SupportRequest
from nodetune.verify import document as verify_document
from nodetune.verify.model import Figure

HISTORY_DAYS = 90
AREAS = ("gpu", "mig", "pcie", "memory", "firmware", "storage", "rdma", "network", "numa", "cpu")
"""Areas of checks about hardware and its driver."""

NAMELESS = "host"


@dataclass(frozen=True)
class Dossier:
    """All that is known. `problem`: why the host could not be read (empty: it was, or saved facts were)."""

    host: str
    facts: HostFacts
    problem: str = ""
    findings: tuple[Finding, ...] = ()
    figures: tuple[Figure, ...] = ()
    past: dict[str, Any] = field(default_factory=dict)
    tried: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Gathering(Selection):
    """The audit's facts, and the serial numbers that a vendor asks for."""

    def facts(self) -> set[str]:
        return super().facts() | catalogue.asked_for()


def gather(request: SupportRequest, show: Show) -> Dossier:
    """Return what is known of a host. Raise UserError for a file or host that is not there."""
    if request.key:
        sealed.signature(b"", request.key)
    figures = tuple(
        figure
        for path in request.measurements
        for figure in verify_document.read(path).figures
        if figure.host == request.host
    )
    result = _saved(request) if request.facts_path else _probed(request, show)
    findings = tuple(
        found for found in result.findings if found.status == "fail" and explain.area(found.check) in AREAS
    )
    known = Dossier(
        request.host,
        vendor_facts.of(result.facts or HostFacts(request.host, {}, {})),
        "" if result.facts else f"{result.state}: {result.message}",
        findings,
        figures,
        _past(request, show),
        tuple(_tried(request)),
    )
    return _without_name(known) if request.nameless else known


def _saved(request: SupportRequest) -> HostResult:
    facts = document.load(request.facts_path or Path())
    if facts.host != request.host:
        raise UserError(f"--facts {request.facts_path}: contains facts for {facts.host}, not for {request.host}")
    judged = Auditor(Selection()).judged(HostResult(facts.host, "ok", facts=facts))[0]
    return replace(judged, facts=facts)


def _probed(request: SupportRequest, show: Show) -> HostResult:
    _, (result,) = audit_run.selected_with_facts(Gathering(), request.way, show)
    return result


def _past(request: SupportRequest, show: Show) -> dict[str, Any]:
    """Return the past of the hardware from the history; nothing, with a warning, if that cannot be read."""
    try:
        return _known_past(request, show) if request.history else {}
    except PlaceError:
        raise
    except HistoryError as problem:
        show.warn(f"{problem}; the report has no past")
        return {}


def _known_past(request: SupportRequest, show: Show) -> dict[str, Any]:
    """Return changes, numbers that moved, and trends."""
    with History(request.history, show, make=False) as known:
        if request.host not in known.hosts():
            return {}
        begun = time.time() - HISTORY_DAYS * 86_400
        told = timeline.of_host(known, request.host, "", begun).data()
        broken = [each for each in known.open([request.host]) if each.conclusion.who == REPAIR]
        done = known.actions([request.host], begun)
    shown = {name: [each for each in told[name] if _is_shown(each)] for name in ("changes", "series", "trends")}
    shown["open"] = [{**conclusion_json.data(each.conclusion), "since": each.since} for each in broken]
    shown["actions"] = [
        {"at": each.at, "kind": each.kind, "device": each.device} for each in done
    ]  # no names, no reasons
    return {**shown, "findings": [each for each in told["findings"] if explain.area(str(each["finding"])) in AREAS]}


def _is_shown(entry: dict[str, Any]) -> bool:
    leaf = str(entry.get("leaf", ""))
    return leaf == "reset" or leaf.startswith(FIGURES) or vendor_facts.is_shown(leaf)


def _tried(request: SupportRequest) -> list[dict[str, Any]]:
    """Return the runs that changed the host and were not rolled back: when, and what they changed; no values."""
    found = earlier_runs.on([request.host], request.runs_folder)
    return [
        {
            "run": run.id,
            "command": str(run.about.get("command")),
            "started": run.about.get("started"),
            "changed": earlier_runs.labels(run, request.host),
        }
        for run, _ in found
    ]


def _without_name(known: Dossier) -> Dossier:
    return replace(known, host=NAMELESS, facts=replace(known.facts, host=NAMELESS))


def files(known: Dossier, page: str, name: str) -> dict[str, str]:
    """Return the files of the bundle. `name` is the host's, which a nameless bundle has nowhere."""
    data = {
        "facts.json": document.to_data(known.facts),
        "findings.json": [_finding(each) for each in known.findings],
        "figures.json": [_figure(each) for each in known.figures],
        "history.json": known.past,
        "tried.json": list(known.tried),
    }
    cleaned = {each: vendor_facts.clean(content) for each, content in {**data, "summary.txt": page}.items() if content}
    if known.host == NAMELESS:
        cleaned = vendor_facts.renamed(cleaned, name, NAMELESS)
    return {
        each: content if isinstance(content, str) else json_document.text(content) for each, content in cleaned.items()
    }


def _finding(found: Finding) -> dict[str, Any]:
    names = ("check", "severity", "title", "observed", "wanted")
    return {**{name: getattr(found, name) for name in names}, "subjects": list(found.subjects)}


def _figure(figure: Figure) -> dict[str, Any]:
    names = ("measurement", "metric", "subject", "unit", "value")
    return {**{name: getattr(figure, name) for name in names}, "runs": [list(run) for run in figure.runs]}
