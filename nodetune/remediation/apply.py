"""Apply fixes: audit hosts and decide (`prepare`), then change them (`carry_out`) or show what would change (`dry_run`)."""

from __future__ import annotations

import shlex
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nodetune.api.model import Finding, HostResult
from nodetune.audit import document as audit_document
from nodetune.audit import run as audit_run
from nodetune.foundation import nodeset
from nodetune.foundation.exit_codes import END_STATE_MISSED, INCOMPLETE, OK
from nodetune.foundation.stage_output import Phase, Show, measuring
from nodetune.hosts.target import Target
from nodetune.remediation import document, plan_document, rollout
from nodetune.remediation import outcomes as remediation_outcomes
from nodetune.remediation.ansible.events import Outcome
from nodetune.remediation.ansible.inventory import as_probed
from nodetune.remediation.ansible.play import OnEvent
from nodetune.remediation.batches import batches
from nodetune.remediation.document import ApplyReport
from nodetune.remediation.outcomes import StepOutcome
from nodetune.remediation.plan import HostPlan, PlanSelection
from nodetune.remediation.request import ApplyRequest
from nodetune.remediation.runs.connection import lasting_inventory, login_record
from nodetune.remediation.runs.record import Run, recorded
from nodetune.verify import before_after, remote
from nodetune.verify import document as verify_document
from nodetune.verify.before_after import BeforeAfter
from nodetune.verify.compare import MIN_RUNS
from nodetune.verify.run import HostVerification
from nodetune.verify.suites import SuiteRequest

VERIFY = ("verify", "suite", "repeat", "disk", "pairs", "network")
"""The fields of a request that say what is measured."""


@dataclass(frozen=True)
class Prepared:
    """The input of an apply."""

    request: ApplyRequest
    targets: Sequence[Target]
    plans: Sequence[HostPlan]

    @property
    def results(self) -> list[HostResult]:
        return [each.result for each in self.plans]

    @property
    def busy(self) -> list[HostPlan]:
        """The plans that change something."""
        return [each for each in self.plans if each.findings]

    @property
    def not_reached(self) -> list[HostResult]:
        return [each for each in self.results if each.state != "ok"]

    @property
    def skipped(self) -> list[StepOutcome]:
        """The steps that this run leaves out."""
        return rollout.left_out(self.plans)

    @property
    def without_skipped(self) -> list[HostPlan]:
        return [replace(each, left_out=()) for each in self.plans]

    @property
    def code(self) -> int:
        """The exit code where there is nothing to do: 4 if something that is allowed waits, else that of `judged`."""
        waits = any(self._allows(each.disruption) for each in self.skipped)
        return END_STATE_MISSED if waits else self.judged

    @property
    def judged(self) -> int:
        """3 if a host was not reached, or a check is unknown whose fix this run allows, or no check was judged on a host."""
        sets = (check for check in self.request.selection.judged() if check.set is not None)
        fixable = {check.id for check in sets if self._allows(check.remedy.disruption)}
        lacking = any(each.state != "ok" or _lacks(each.findings, fixable) for each in self.results)
        return INCOMPLETE if lacking else OK

    def _allows(self, disruption: str) -> bool:
        return remediation_outcomes.within(disruption, self.request.disruption)

    @property
    def suite(self) -> SuiteRequest:
        """The measurements of --verify."""
        asked = self.request
        return SuiteRequest(
            suite=asked.suite or "quick",
            repeat=asked.repeat or MIN_RUNS,
            disk=asked.disk,
            pairs=asked.pairs,
            network=asked.network,
        )

    @property
    def duration(self) -> str:
        """How long --verify will take, and which hosts are alone, for a person who decides whether to wait."""
        parts = batches([each.host for each in self.busy], self.request.canary, self.request.batch)
        alone = [host for part in parts if len(part) == 1 for host in part] if self.request.pairs else []
        without = f"; --pairs finds no second host in the batch of {nodeset.fold(alone)}" if alone else ""
        return before_after.duration(self.suite, len(parts)) + without


def _lacks(findings: Iterable[Finding], fixable: Container[str]) -> bool:
    """Return whether fixes of these checks may be missing, because a check is unknown, or whether none was judged."""
    statuses = {each.check: each.status for each in findings if each.status != "skip"}
    unknown = [check for check, status in statuses.items() if status == "unknown"]
    return any(check in fixable for check in unknown) or (bool(unknown) and len(unknown) == len(statuses))


def prepare(request: ApplyRequest, show: Show) -> Prepared:
    """Audit the hosts, and decide what to do on each. Raise InventoryError."""
    request = replace(request, selection=PlanSelection.of(request.selection))
    return planned(request, *audit_run.selected_with_facts(request.selection, request.connection, show))


def planned(request: ApplyRequest, targets: Sequence[Target], results: Iterable[HostResult]) -> Prepared:
    """Decide what to do on hosts by the results of their audit. The selection of the request is a PlanSelection."""
    found = list(results)
    seen = {each.host: each.facts for each in found}
    probed = [as_probed(target, seen.get(target.name)) for target in targets]
    return Prepared(request, probed, [rollout.prepare(each, request) for each in found])


def dry_run(prepared: Prepared, show: Show) -> tuple[dict[str, Outcome], int]:
    """Run Ansible in check mode. Return the outcomes and the exit code."""
    with show.phase("dry run", len(prepared.busy)) as phase:
        outcomes = rollout.dry_run(prepared.plans, prepared.targets, prepared.request.connection, phase.heard)
    wrong = any(each.state != "ok" or each.gathered("problems") for each in outcomes.values())
    return outcomes, END_STATE_MISSED if wrong else prepared.judged


def carry_out(prepared: Prepared, show: Show) -> ApplyReport:
    """Change the hosts and record it. Raise OSError where nothing can be recorded."""
    request, hosts = prepared.request, [each.host for each in prepared.busy]
    inventory = lasting_inventory(request.connection.inventory)
    with recorded("apply", _recorded(request), hosts, inventory, request.runs_folder) as run:
        _record_before(run, prepared)
        with show.phase("apply", len(hosts)) as phase:
            report = changed(prepared, run, phase.heard, _measured(prepared, run, phase) if request.verify else None)
        run.code = report.code
    return report


def changed(prepared: Prepared, run: Run, on_event: OnEvent, around: BeforeAfter | None = None) -> ApplyReport:
    """Change the hosts, and record the outcome of each fix. `around` measures before and after."""
    rolling = rollout.Rollout(prepared.targets, prepared.request, run, on_event, around)
    done = rolling.apply(prepared.plans)
    run.save("after", audit_document.audit(rolling.after()))
    run.save("outcomes", document.outcomes(done))
    verified = around.result() if around else None
    drained, stopped = rolling.operations.left_drained, rolling.operations.stopped
    reached = not drained and remediation_outcomes.reached(done, prepared.request.disruption)
    code = max(prepared.judged if reached else END_STATE_MISSED, verified.code if verified else OK)
    return ApplyReport(run.id, done, rollout.interrupted(rolling.played), drained, verified, code, stopped)


def _measured(prepared: Prepared, run: Run, phase: Phase) -> BeforeAfter:
    """Return what measures the hosts around their changes, and keeps the figures in the record."""
    connection, suite = prepared.request.connection, prepared.suite

    def keep(when: str, verifications: Sequence[HostVerification]) -> None:
        run.save(f"{when}-verify", verify_document.document(verifications, suite, shlex.join(connection.words)))

    return BeforeAfter(suite, prepared.targets, connection, remote.measure, measuring(phase), keep)


def _recorded(request: ApplyRequest) -> dict[str, Any]:
    """Return the options that the record keeps."""
    selection, connection = request.selection, request.connection
    names = ("reboot", "reboot_seconds", "drain_seconds", "assume_drained", "batch", "canary")
    return {
        "inventory": connection.inventory,
        **login_record(connection),
        "profiles": selection.profiles,
        "site": " ".join(map(str, selection.files)),
        "select": selection.select,
        "ignore": selection.ignore,
        **{name: getattr(request, name) for name in (*names, "max_failures", *VERIFY)},
        "max_disruption": request.disruption,
        "drain": bool(request.drain),
    }


def _record_before(run: Run, prepared: Prepared) -> None:
    for each in prepared.busy:
        if each.result.facts:
            run.save_facts(each.result.facts)
    run.save("before", audit_document.audit(replace(each.result, facts=None) for each in prepared.busy))
    run.save("plan", plan_document.plan([each for each in prepared.without_skipped if each.findings]))
