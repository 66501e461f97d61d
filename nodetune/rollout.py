"""An apply from plan to proof: hosts in waves through Ansible, rebooted where wanted, and audited again."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from nodetune import apply, playbook, workflow
from nodetune import plan as planning
from nodetune.apply import NOT_APPLIED, PENDING, SKIPPED, Carried, Done
from nodetune.choice import Planning
from nodetune.field import Field, How, Tell
from nodetune.fixes import FREE
from nodetune.model import HostResult, Step
from nodetune.playbook import Outcome, Way
from nodetune.runs import Run, past
from nodetune.transport import Target
from nodetune.workflow import Reach


@dataclass(frozen=True)
class Planned:
    """What is to be done on one host: its audit with facts, the steps of this run, those left out, and Ansible's data."""

    result: HostResult
    todo: tuple[Step, ...] = ()
    skipped: tuple[Done, ...] = ()
    built: planning.Built = field(default_factory=planning.Built)

    @property
    def disturbs(self) -> bool:
        return any(group.disruption not in FREE for group in self.built.groups)


def prepare(result: HostResult, how: How) -> Planned:
    """Decide what to do on one host. Pure."""
    if result.facts is None:
        return Planned(result)
    if result.facts.about.get("uid"):
        why = "changing a host takes root: log in as root, or use --become (-b)"
        return Planned(result, skipped=tuple(Done(step, SKIPPED, why) for step in planning.plan([result])))
    # jobs on a node that is drained first end by themselves; the host is asked again before anything is disturbed
    waits = "" if how.drain and planning.in_slurm(result.facts) else planning.busy(result.facts)
    chosen, left = planning.select(planning.plan([result]), how.max_disruption, {result.host: waits})
    built = planning.build(chosen, result.facts)
    cannot = [step for step, _ in built.unfixable]
    skipped = [Done(step, SKIPPED, why) for step, why in (*left, *built.unfixable)]
    return Planned(result, tuple(step for step in chosen if step not in cannot), tuple(skipped), built)


class Beside(Protocol):
    """Looks at the hosts of each wave: drained and not yet changed, and again when they are done, before they are given
    back. Both return why the whole run must end there, or nothing. (nodetune.gain.Gauge measures them.)
    """

    @property
    def worse(self) -> set[str]:
        """Hosts to which the changes did harm; they count as failed."""

    def before(self, hosts: Sequence[str]) -> str:
        """`hosts` are about to be changed."""

    def after(self, hosts: Sequence[str]) -> str:
        """`hosts` were changed, all of them."""


class Rollout:
    """One apply over hosts. `tell` hears what Ansible does as it does it; `run` keeps the record."""

    def __init__(
        self,
        targets: Iterable[Target],
        choice: Planning,
        reach: Reach,
        how: How,
        run: Run,
        tell: Tell,
        beside: Beside | None = None,
    ) -> None:
        self._beside = beside
        self._field = Field(targets, reach, how, run, tell)
        self._choice, self._reach, self._how, self._run = choice, reach, how, run
        self._after: dict[str, HostResult] = {}
        self._played: dict[str, Outcome] = {}

    @property
    def left_drained(self) -> dict[str, str]:
        """Hosts that this run drained and could not give back, with the reason."""
        return self._field.left_drained

    @property
    def stopped(self) -> str:
        """Why it ended before it was done; empty where it did not."""
        return self._field.stopped

    def apply(self, planned: Sequence[Planned]) -> list[Done]:
        """Do it, wave after wave, and say what each step came to. Raises apply.BadBatch before anything is done."""
        by_host = {each.result.host: each for each in planned if each.todo}
        done = [skipped for each in planned for skipped in each.skipped]
        failed: set[str] = set()
        for wave in apply.waves(sorted(by_host), self._how.canary, self._how.batch):
            why = self._field.stopped or self._too_many(failed)
            if why:
                done += [Done(step, NOT_APPLIED, why) for host in wave for step in by_host[host].todo]
                continue
            came_to = self._wave([by_host[host] for host in wave])
            failed |= apply.failed_hosts(came_to) | (self._beside.worse if self._beside else set())
            done += came_to
        return done

    def _too_many(self, failed: set[str]) -> str:
        if len(failed) <= self._how.max_failures:
            return ""
        return f"not begun: {len(failed)} hosts had failed (--max-failures {self._how.max_failures})"

    def after(self) -> list[HostResult]:
        """The last audit of each host that was worked on."""
        return workflow.by_name(self._after.values())

    def interrupted(self) -> dict[str, list[dict[str, Any]]]:
        """Host → earlier runs that had not ended there, with what each had done."""
        return interrupted(self._played)

    def _wave(self, planned: Sequence[Planned]) -> list[Done]:
        disturbed = [each.result.host for each in planned if each.disturbs]
        ours, waits = self._field.drained(disturbed) if self._how.drain else ([], {})
        hosts = [each.result.host for each in planned]
        if self._beside and not self._field.stopped:
            self._field.stopped = self._beside.before(hosts)
        if self._field.stopped:
            self._field.give_back(ours)
            return [Done(step, NOT_APPLIED, self._field.stopped) for each in planned for step in each.todo]
        carried = self._carried_out(planned, waits)
        self._audit([host for host in hosts if carried[host].message == "" or carried[host].touched])
        done = self._outcomes(planned, carried)
        pending = sorted({each.step.host for each in done if each.outcome == PENDING})
        if self._how.reboot and pending and not self._field.stopped:
            lost = self._field.rebooted(pending)
            self._audit(pending)
            carried = {host: replace(each, message=lost.get(host, each.message)) for host, each in carried.items()}
            done = self._outcomes(planned, carried)
        if self._beside and not self._field.stopped:
            self._field.stopped = self._beside.after([host for host in hosts if carried[host].touched])
        self._field.give_back(ours)
        return done

    def _carried_out(self, planned: Sequence[Planned], waits: Mapping[str, str]) -> dict[str, Carried]:
        """Run the changes; the record has them before this returns."""
        groups = {each.result.host: self._groups(each, waits.get(each.result.host, "")) for each in planned}
        for host, data in groups.items():
            self._run.save_changes(host, data)
        busy = [host for host, data in groups.items() if data]
        take_over = past.over(self._run)
        given = {
            host: {
                "nodetune_groups": groups[host],
                "nodetune_take_over": take_over.get(host, ""),
                "nodetune_controller": platform.node(),
            }
            for host in busy
        }
        outcomes = self._field.play("remediate", busy, given)
        self._played |= outcomes
        return {host: _carried(outcomes.get(host, Outcome(host)), waits.get(host, "")) for host in groups}

    def _groups(self, planned: Planned, waits: str) -> list[dict[str, Any]]:
        """What disturbs work is refused on the host itself where a GPU is in use or a scheduler may send work."""
        return [
            {**group.data(), "guard": {} if group.disruption in FREE else self._field.guard}
            for group in planned.built.groups
            if not waits or group.disruption in FREE
        ]

    def _audit(self, hosts: Sequence[str]) -> None:
        targets = [self._field.targets[host] for host in hosts]
        for result in workflow.audit_hosts(targets, self._choice, self._reach):
            self._after[result.host] = result
            told = {"task": "Audit", "item": "", "status": result.state, "changed": False, "message": result.message}
            self._run.add_event({"host": result.host, **told, "seconds": round(result.seconds, 3)})

    def _outcomes(self, planned: Sequence[Planned], carried: Mapping[str, Carried]) -> list[Done]:
        return [
            apply.outcome(step, self._after.get(step.host), carried[step.host])
            for each in planned
            for step in each.todo
        ]


def rehearse(planned: Sequence[Planned], targets: Iterable[Target], reach: Reach, tell: Tell) -> dict[str, Outcome]:
    """Ansible's check mode over everything that an apply would do: nothing is written, locked or drained."""
    known = {target.name: target for target in targets}
    given = {
        each.result.host: {
            "nodetune_run": "rehearsal",
            "nodetune_groups": [{**group.data(), "guard": {}} for group in each.built.groups],
        }
        for each in planned
        if each.todo
    }
    way = Way(reach.options, min(reach.forks, playbook.FORKS), check=True)
    return playbook.play("remediate", [known[host] for host in given], given, way, tell) if given else {}


def _carried(outcome: Outcome, waits: str) -> Carried:
    """What Ansible's answer says of the host and of single checks."""
    problems: dict[str, str] = {}
    for problem in outcome.gathered("problems"):
        for check in problem.get("checks") or ():
            problems[str(check)] = _named(str(problem.get("label", "")), str(problem.get("message", "")))
    refused = next((str(event.result["waits"]) for event in outcome.results if event.result.get("waits")), "")
    message = "" if outcome.state == "ok" else outcome.message
    return Carried(message, waits or refused, problems, touched=bool(outcome.gathered("entries")))


def _named(label: str, message: str) -> str:
    """What went wrong with the name of the thing, which many messages begin with."""
    return message if message.startswith(label) else f"{label}: {message}"


def interrupted(outcomes: Mapping[str, Outcome]) -> dict[str, list[dict[str, Any]]]:
    """Host → the runs that had not ended there when this one began: {"run", "did": [what each touched] …}."""
    found = {host: outcome.gathered("interrupted") for host, outcome in outcomes.items()}
    return {host: dead for host, dead in found.items() if dead}
