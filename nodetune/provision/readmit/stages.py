"""The stages of a readmission: those of other commands, one after the other. Each knows what the earlier ones found."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from nodetune.api.model import HostResult
from nodetune.audit import conclude as audit_conclude
from nodetune.audit import document as audit_document
from nodetune.audit import run as audit_run
from nodetune.audit.remembered import Remembered
from nodetune.audit.selection import Selection
from nodetune.facts import document as facts_document
from nodetune.foundation import json_document
from nodetune.foundation.exit_codes import FINDINGS, INCOMPLETE
from nodetune.foundation.stage_output import Show
from nodetune.history.history import History
from nodetune.history.points import LeafChange
from nodetune.provision import results
from nodetune.provision.readmit import conclude, replaced_parts, resuming, stage_results
from nodetune.provision.readmit.preparation import Prepared
from nodetune.provision.readmit.readmission import STOPPED, Readmission, StageOutput
from nodetune.provision.readmit.replaced_parts import SERIALS, Inventory
from nodetune.provision.record import LEFT_OUT, StageResult
from nodetune.verify import conclude as verify_conclude
from nodetune.verify import document as verify_document
from nodetune.verify.find_slow import conclude as slow_conclude
from nodetune.verify.find_slow import document as slow_document
from nodetune.verify.find_slow.run import find_slow
from nodetune.verify.request import VerifyRequest
from nodetune.verify.verify_hosts import verify_hosts

MORE_ROUNDS = 6
"""Rounds beyond the usual limit: of three simulated hosts, one that loses 5 % is then named in 25 of 60 fleets, not in none."""

HISTORY_DAYS = 30
"""How far back the history is asked about parts: before the drain about lost ones, without one about all."""


@dataclass(frozen=True)
class Stage:
    """A stage by its name. `take` returns what it found; what it raises is missing like all else (UserError, OSError)."""

    name: str
    take: Callable[[Prepared, Readmission, Show], StageOutput]


@dataclass(frozen=True)
class Probing(Selection):
    """The audit's facts, and the serial numbers of all parts."""

    def facts(self) -> set[str]:
        return super().facts() | set(SERIALS)


def _audited(when: str, prepared: Prepared, _found: Readmission, show: Show) -> StageOutput:
    """Judge the host, and once more what the load has left: Xids, errors, throttling."""
    request, asked = prepared.request, prepared.request.selection
    probing = Probing(asked.profiles, asked.site, asked.select, asked.ignore, files=asked.files)
    _, (result,) = audit_run.selected_with_facts(probing, request.to(request.host), show)
    if result.state == "interrupted":
        return StageOutput(STOPPED)
    concluded = audit_conclude.of_host(result, int(time.time()))
    facts, documents = result.facts, {}
    if facts:
        documents[f"facts{when}.json"] = facts_document.dump(facts)
        result = _remembered(request.history, result, show)
    documents[f"audit{when}.json"] = json_document.text(audit_document.audit([replace(result, facts=None)]))
    came = results.audited(result, gating_only=True)
    if not came.ok and came.code != INCOMPLETE:
        came = replace(came, code=FINDINGS)
    return StageOutput(came, documents, concluded, facts)


def _remembered(history: str, result: HostResult, show: Show) -> HostResult:
    """Keep the look of an audit in the history, if there is one."""
    if not history or result.facts is None:
        return result
    with Remembered(history, show) as kept:
        return kept.told([kept.taken(replace(result, look=kept.look_of(result.facts)))])[0]


def _inventory(prepared: Prepared, found: Readmission, show: Show) -> StageOutput:
    inventory = _compared_parts(prepared, found, show)
    if inventory is None:
        return StageOutput(StageResult(LEFT_OUT, "no earlier facts: --before FILE or --history"))
    concluded = conclude.concluded(found.host, inventory, found.facts, int(time.time()))
    return StageOutput(stage_results.inventory(inventory), concluded=concluded, inventory=inventory)


def _compared_parts(prepared: Prepared, found: Readmission, show: Show) -> Inventory | None:
    """Compare with the facts from before, else by the history. Raise HistoryError."""
    request, node = prepared.request, prepared.node
    if prepared.before and found.facts:
        return replaced_parts.against(prepared.before, found.facts)
    if not request.history:
        return None
    since = node.since if node and node.since else time.time()
    known = _changes(request.history, request.host, since - HISTORY_DAYS * 86_400, show)
    return replaced_parts.by_history(known, since if node and node.since else 0)


def _changes(history: str, host: str, since: float, show: Show) -> list[LeafChange]:
    """Return what a history saw changing on a host. Raise HistoryError."""
    with History(history, show, make=False) as known:
        return known.changes(host, since) if host in known.hosts() else []


def _measured(prepared: Prepared, _found: Readmission, show: Show) -> StageOutput:
    request, asked = prepared.request, prepared.request.measured
    wanted = VerifyRequest(request.to(request.host), asked, history=request.history, baseline=request.baseline)
    measured = verify_hosts(wanted, show)
    documents = {"verify.json": json_document.text(verify_document.document(measured, asked, ""))}
    result = STOPPED if measured[0].state == "interrupted" else stage_results.proved(measured[0])
    return StageOutput(result, documents, verify_conclude.concluded(measured, int(time.time())))


def _compared(prepared: Prepared, _found: Readmission, show: Show) -> StageOutput:
    request, near = prepared.request, prepared.neighbours
    if not near:
        return StageOutput(StageResult(LEFT_OUT, prepared.alone))
    wanted = VerifyRequest(request.to(request.host, *near), find_slow=True, more_rounds=MORE_ROUNDS)
    search = find_slow(wanted, show)
    documents = {"find-slow.json": json_document.text(slow_document.document(search, wanted.connection.words))}
    result = stage_results.compared(search, request.host)
    return StageOutput(result, documents, slow_conclude.concluded(search, int(time.time())))


def _resumed(prepared: Prepared, found: Readmission, show: Show) -> StageOutput:
    """Resume the drain of the guard, if nothing is missing."""
    if found.missing:
        return StageOutput(StageResult(LEFT_OUT, "only once nothing is missing"))
    if prepared.node is None:
        return StageOutput(resuming.without_slurm(found.facts, prepared.no_slurm))
    return StageOutput(resuming.resumed(prepared.request, show))


PROOFS = (
    Stage("audit", partial(_audited, "")),
    Stage("inventory", _inventory),
    Stage("verify", _measured),
    Stage("find-slow", _compared),
    Stage("audit again", partial(_audited, "-after-load")),
)
"""In this order. One that fails keeps the host drained; the others still run, so that one list has all that is missing."""

RESUME = Stage("resume", _resumed)
STAGES = (*PROOFS, RESUME)
