"""An apply from plan to audit: hosts in batches through Ansible, rebooted where wanted, and audited again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nodetune.api.model import FREE, HostFacts, HostResult
from nodetune.audit import auditor, gpu_users
from nodetune.audit import hosts as audit_hosts
from nodetune.foundation import text
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.hosts.target import Target
from nodetune.remediation import outcomes as remediation_outcomes
from nodetune.remediation import plan as planning
from nodetune.remediation.ansible import play
from nodetune.remediation.ansible.events import Outcome
from nodetune.remediation.ansible.play import OnEvent, PlayOptions
from nodetune.remediation.batches import batches
from nodetune.remediation.host_operations import KUBERNETES, HostOperations
from nodetune.remediation.link_peers import LinkPeers
from nodetune.remediation.outcomes import NOT_APPLIED, PENDING, SKIPPED, StepOutcome
from nodetune.remediation.plan import HostPlan, added
from nodetune.remediation.request import ApplyRequest
from nodetune.remediation.runs.record import Run

if TYPE_CHECKING:
    from nodetune.verify.before_after import BeforeAfter


def prepare(result: HostResult, request: ApplyRequest) -> HostPlan:
    """Decide what to do on one host. Pure."""
    return planning.safely(result, lambda facts: _prepare(result, facts, request))


def _prepare(result: HostResult, facts: HostFacts, request: ApplyRequest) -> HostPlan:
    if facts.about.get("uid"):
        why = "changes on a host need root: log in as root, or use --become (-b)"
        return HostPlan(result, left_out=tuple((found, why) for found in planning.fixable(result)))
    # jobs on a node that is drained first end by themselves, and pods are evicted; the host is asked again before anything is disturbed
    drained = request.drain == KUBERNETES or (request.drain and gpu_users.in_slurm(facts))
    waits = "" if drained else gpu_users.busy(facts)
    return planning.plan(result, request.disruption, waits, added(request.selection))


def left_out(plans: Iterable[HostPlan]) -> list[StepOutcome]:
    """Return the findings that are skipped from the start."""
    return [StepOutcome.of(plan.host, found, SKIPPED, why) for plan in plans for found, why in plan.left_out]


class Rollout:
    """One apply over hosts. `on_event` is called with each of Ansible's events; `run` keeps the record."""

    def __init__(
        self,
        targets: Iterable[Target],
        request: ApplyRequest,
        run: Run,
        on_event: OnEvent,
        before_after: BeforeAfter | None = None,
    ) -> None:
        self._before_after = before_after
        self.operations = HostOperations(targets, request, run, on_event)
        self._request, self._run = request, run
        self._after: dict[str, HostResult] = {}
        self.played: dict[str, Outcome] = {}
        self._peers = LinkPeers(())

    def apply(self, plans: Sequence[HostPlan]) -> list[StepOutcome]:
        """Apply the plans batch by batch. Return the outcome of each fix. Raise BatchError before anything is done."""
        by_host = {plan.host: plan for plan in plans if plan.findings}
        done = left_out(plans)
        failed: set[str] = set()
        self._peers = LinkPeers(plans)
        first = [host for host in self._peers.canaries() if host in by_host]
        order = [*first, *sorted(by_host.keys() - set(first))]
        for batch in batches(order, max(self._request.canary, len(first)), self._request.batch):
            why = self.operations.stopped or self._too_many(failed)
            if why:
                done += _not_applied([by_host[host] for host in batch], why)
                continue
            outcomes = self._batch([by_host[host] for host in batch])
            failed |= remediation_outcomes.failed_hosts(outcomes)
            failed |= self._before_after.worse if self._before_after else set()
            done += outcomes
        return done

    def _too_many(self, failed: set[str]) -> str:
        if len(failed) <= self._request.max_failures:
            return ""
        return f"not started: {text.count(len(failed), 'host')} failed (--max-failures {self._request.max_failures})"

    def after(self) -> list[HostResult]:
        """Return the last audit of each host that was changed."""
        return auditor.by_name(self._after.values())

    def _batch(self, plans: Sequence[HostPlan]) -> list[StepOutcome]:
        hosts = [plan.host for plan in plans]
        disturbed = [plan.host for plan in plans if plan.disturbs]
        ours, waits = self.operations.drained(disturbed) if self._request.drain else ([], {})
        if self._before_after and not self.operations.stopped:
            self.operations.stopped = self._before_after.before(hosts)
        if self.operations.stopped:
            self.operations.give_back(ours)
            return _not_applied(plans, self.operations.stopped)
        played = self._play(plans, waits)
        touched = [host for host in hosts if played[host].gathered("entries")]
        self._audit([host for host in hosts if played[host].state == "ok" or host in touched])
        done = self._outcomes(plans, played, waits)
        pending = sorted({each.host for each in done if each.outcome == PENDING})
        if self._request.reboot and pending and not self.operations.stopped:
            lost = self.operations.rebooted(pending)
            self._audit(pending)
            played |= {host: replace(played[host], state="failed", message=why) for host, why in lost.items()}
            done = self._outcomes(plans, played, waits)
        if self._before_after and not self.operations.stopped:
            self.operations.stopped = self._before_after.after(touched)
        self.operations.give_back(ours)
        return done

    def _play(self, plans: Sequence[HostPlan], waits: Mapping[str, str]) -> dict[str, Outcome]:
        """Make the changes; the record has them before this returns."""
        groups = {
            plan.host: self._peers.given(plan.host, self._groups(plan, waits.get(plan.host, ""))) for plan in plans
        }
        for host, data in groups.items():
            self._run.save_changes(host, data)
        given = {host: {"nodetune_groups": data} for host, data in groups.items() if data}
        outcomes = self.operations.play("remediate", list(given), given)
        self.played |= outcomes
        for host, outcome in outcomes.items():
            if outcome.state == "ok":
                self._peers.changed(host, groups[host], outcome.gathered("problems"))
        return {host: outcomes.get(host, Outcome(host)) for host in groups}

    def _groups(self, plan: HostPlan, waits: str) -> list[dict[str, Any]]:
        """Return the groups of changes; the host refuses disruptive ones while its GPUs are in use."""
        return [
            {**change.data(), "guard": {} if change.disruption in FREE else self.operations.guard(plan.host)}
            for change in plan.changes
            if not waits or change.disruption in FREE
        ]

    def _audit(self, hosts: Sequence[str]) -> None:
        targets = [self.operations.targets[host] for host in hosts]
        for result in audit_hosts.audit_hosts(targets, self._request.selection, self._request.connection):
            self._after[result.host] = result
            told = {"task": "Audit", "item": "", "status": result.state, "changed": False, "message": result.message}
            self._run.add_event({"host": result.host, **told, "seconds": round(result.seconds, 3)})

    def _outcomes(
        self, plans: Sequence[HostPlan], played: Mapping[str, Outcome], waits: Mapping[str, str]
    ) -> list[StepOutcome]:
        done: list[StepOutcome] = []
        for plan in plans:
            outcome, after = played[plan.host], self._after.get(plan.host)
            unkept = _unkept(outcome)
            problems, waiting = _problems(outcome), waits.get(plan.host) or _refused(outcome)
            message = "" if outcome.state == "ok" else outcome.message
            done += [
                remediation_outcomes.outcome(
                    plan.host,
                    found,
                    after,
                    problem=problems.get(found.check, ""),
                    waits=waiting,
                    message=message,
                    kept=found.check not in unkept,
                )
                for found in plan.findings
            ]
        return done


def _not_applied(plans: Iterable[HostPlan], why: str) -> list[StepOutcome]:
    return [StepOutcome.of(plan.host, found, NOT_APPLIED, why) for plan in plans for found in plan.findings]


def dry_run(
    plans: Sequence[HostPlan], targets: Iterable[Target], connection: ConnectionOptions, on_event: OnEvent
) -> dict[str, Outcome]:
    """Run Ansible in check mode over everything that an apply would do; write, lock and drain nothing."""
    known = {target.name: target for target in targets}
    given = {
        plan.host: {"nodetune_groups": [{**change.data(), "guard": {}} for change in plan.changes]}
        for plan in plans
        if plan.findings
    }
    options = PlayOptions(connection.options, connection.forks, check=True)
    return play.play("remediate", [known[host] for host in given], given, options, on_event=on_event)


def _problems(outcome: Outcome) -> dict[str, str]:
    """Check → what went wrong for it on the host, first."""
    return {
        str(check): _named(str(problem.get("label", "")), str(problem.get("message", "")))
        for problem in reversed(outcome.gathered("problems"))
        for check in problem.get("checks") or ()
    }


def _unkept(outcome: Outcome) -> set[str]:
    """Return the checks for which a file could not be written: the next boot may not keep what is set now."""
    problems = (each for each in outcome.gathered("problems") if str(each.get("label", "")).startswith("/etc/"))
    return {str(check) for problem in problems for check in problem.get("checks") or ()}


def _refused(outcome: Outcome) -> str:
    """Return why the host itself left out disruptive changes."""
    return next((str(event.result["waits"]) for event in outcome.results if event.result.get("waits")), "")


def _named(label: str, message: str) -> str:
    """Add the name of the thing to a message, unless the message begins with it."""
    return message if message.startswith(label) else f"{label}: {message}"


def interrupted(outcomes: Mapping[str, Outcome]) -> dict[str, list[dict[str, Any]]]:
    """Return host → the runs that had not ended there when this one began: {"run", "did": [what each changed] …}."""
    found = {host: outcome.gathered("interrupted") for host, outcome in outcomes.items()}
    return {host: dead for host, dead in found.items() if dead}
