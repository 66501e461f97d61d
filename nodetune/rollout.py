"""An apply from plan to proof: hosts in waves through Ansible, rebooted where wanted, and audited again."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from nodetune import apply, playbook, runs, workflow
from nodetune import plan as planning
from nodetune.apply import NOT_APPLIED, PENDING, SKIPPED, Carried, Done
from nodetune.fixes import FREE
from nodetune.model import HostResult, Step
from nodetune.playbook import Event, Outcome, Way
from nodetune.runs import Run
from nodetune.transport import Target
from nodetune.workflow import Planning, Reach

DRAIN_POLL_SECONDS = 15.0
REBOOT_MORE_SECONDS = 900.0
"""What asking for a reboot, and looking whether it happened, may take beside the wait itself."""

MOST_PAST_RUNS = 20

Tell = Callable[[Event], None]


@dataclass(frozen=True)
class How:
    """What an apply may do: see the options of the same names on the command line."""

    max_disruption: str = "new sessions"
    reboot: bool = False
    drain: bool = False
    drain_seconds: float = 3600.0
    reboot_seconds: float = 1800.0
    assume_drained: bool = False
    batch: str = ""
    canary: int = 1
    max_failures: int = 0


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
    chosen, left = planning.select(
        planning.plan([result]), how.max_disruption, {result.host: planning.busy(result.facts)}
    )
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
        self._targets = {target.name: target for target in targets}
        self._choice, self._reach, self._how, self._run, self._tell = choice, reach, how, run, tell
        self._after: dict[str, HostResult] = {}
        self._played: dict[str, Outcome] = {}
        self._stopped = ""
        self.left_drained: dict[str, str] = {}
        """Hosts that this run drained and could not give back, with the reason."""

    def apply(self, planned: Sequence[Planned]) -> list[Done]:
        """Do it, wave after wave, and say what each step came to. Raises apply.BadBatch before anything is done."""
        by_host = {each.result.host: each for each in planned if each.todo}
        done = [skipped for each in planned for skipped in each.skipped]
        failed: set[str] = set()
        for wave in apply.waves(sorted(by_host), self._how.canary, self._how.batch):
            why = self._stopped or self._too_many(failed)
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
        ours, waits = self._drained(disturbed) if self._how.drain else ([], {})
        hosts = [each.result.host for each in planned]
        if self._beside and not self._stopped:
            self._stopped = self._beside.before(hosts)
            if self._stopped:
                self._give_back(ours)
                return [Done(step, NOT_APPLIED, self._stopped) for each in planned for step in each.todo]
        carried = self._carried_out(planned, waits)
        self._audit([host for host in hosts if carried[host].message == "" or carried[host].touched])
        done = self._outcomes(planned, carried)
        pending = sorted({each.step.host for each in done if each.outcome == PENDING})
        if self._how.reboot and pending and not self._stopped:
            lost = self._rebooted(pending)
            self._audit(pending)
            carried = {host: replace(each, message=lost.get(host, each.message)) for host, each in carried.items()}
            done = self._outcomes(planned, carried)
        if self._beside and not self._stopped:
            self._stopped = self._beside.after([host for host in hosts if carried[host].touched])
        self._give_back(ours)
        return done

    def _drained(self, hosts: Sequence[str]) -> tuple[list[str], dict[str, str]]:
        """Take hosts out of service and wait. Returns those that we drained, and host → why it is not free in the end."""
        tries = {
            "nodetune_drain_tries": max(1, round(self._how.drain_seconds / DRAIN_POLL_SECONDS)),
            "nodetune_drain_delay": DRAIN_POLL_SECONDS,
        }
        outcomes = self._play("drain", hosts, dict.fromkeys(hosts, tries), self._how.drain_seconds + 600)
        ours = [host for host, outcome in outcomes.items() if any(event.changed for event in outcome.results)]
        return ours, {host: _still_busy(outcome) for host, outcome in outcomes.items() if outcome.state != "ok"}

    def _give_back(self, hosts: Sequence[str]) -> None:
        """Resume what we drained; after an interruption nobody knows how far a host came, and it stays drained."""
        if self._stopped:
            self.left_drained |= dict.fromkeys(hosts, self._stopped)
            return
        for host, outcome in self._play("resume", hosts).items():
            if not any(event.changed for event in outcome.results):
                self.left_drained[host] = (
                    outcome.message or "slurmd does not run there, or somebody else drained it since"
                )

    def _carried_out(self, planned: Sequence[Planned], waits: Mapping[str, str]) -> dict[str, Carried]:
        """Run the changes; the record has them before this returns."""
        groups = {each.result.host: self._groups(each, waits.get(each.result.host, "")) for each in planned}
        for host, data in groups.items():
            self._run.save_changes(host, data)
        busy = [host for host, data in groups.items() if data]
        take_over = own_runs_of_the_past(self._run)
        given = {
            host: {
                "nodetune_groups": groups[host],
                "nodetune_take_over": take_over.get(host, ""),
                "nodetune_controller": platform.node(),
            }
            for host in busy
        }
        outcomes = self._play("remediate", busy, given)
        self._played |= outcomes
        return {host: _carried(outcomes.get(host, Outcome(host)), waits.get(host, "")) for host in groups}

    def _groups(self, planned: Planned, waits: str) -> list[dict[str, Any]]:
        """What disturbs work is refused on the host itself where a GPU is in use or a scheduler may send work."""
        return [
            {**group.data(), "guard": {} if group.disruption in FREE else self._guard}
            for group in planned.built.groups
            if not waits or group.disruption in FREE
        ]

    @property
    def _guard(self) -> dict[str, bool]:
        return _out_of_use(self._how.assume_drained)

    def _rebooted(self, hosts: Sequence[str]) -> dict[str, str]:
        """Reboot hosts that are still free. Host → why it was not rebooted, or did not come back."""
        wait = self._how.reboot_seconds
        given = {host: {"nodetune_reboot_seconds": round(wait), "nodetune_guard": self._guard} for host in hosts}
        outcomes = self._play("reboot", hosts, given, wait + REBOOT_MORE_SECONDS)
        return {host: f"reboot: {outcome.message}" for host, outcome in outcomes.items() if outcome.state != "ok"}

    def _audit(self, hosts: Sequence[str]) -> None:
        targets = [self._targets[host] for host in hosts]
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

    def _play(
        self,
        name: str,
        hosts: Sequence[str],
        variables: Mapping[str, Mapping[str, Any]] | None = None,
        seconds: float = playbook.SECONDS,
    ) -> dict[str, Outcome]:
        if not hosts:
            return {}
        given = {host: {"nodetune_run": self._run.id, **(variables or {}).get(host, {})} for host in hosts}
        way = Way(self._reach.options, min(self._reach.forks, playbook.FORKS), seconds)
        targets = [self._targets[host] for host in hosts]
        outcomes = playbook.play(name, targets, given, way, Recorder(self._run, self._tell))
        stopped = next((outcome.message for outcome in outcomes.values() if outcome.state == "interrupted"), "")
        self._stopped = self._stopped or stopped
        return outcomes


class Recorder:
    """Hears the events of a play: keeps journal entries, differences and a line of each, then passes them on."""

    def __init__(self, run: Run, tell: Tell) -> None:
        self._run, self._tell = run, tell

    def __call__(self, event: Event) -> None:
        entries, diffs = playbook.objects(event.result.get("entries")), playbook.objects(event.result.get("diff"))
        if entries:
            self._run.add_entries(event.host, entries)
        if diffs:
            self._run.add_diffs(event.host, diffs)
        if event.status != "started":
            names = ("host", "task", "item", "status", "changed", "seconds", "message")
            self._run.add_event({name: getattr(event, name) for name in names})
        self._tell(event)


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


def _still_busy(outcome: Outcome) -> str:
    """Why a drain did not come to its end: the jobs that run, or what went wrong."""
    said = [str(event.result["busy"]) for event in outcome.results if event.result.get("busy")]
    return said[-1] if said else f"drain: {outcome.message}"


def own_runs_of_the_past(own: Run) -> dict[str, str]:
    """Host → runs of this machine that are over, ended or not: where one still holds a lock, it may be taken over."""
    past: dict[str, list[str]] = {}
    for run in runs.listing(own.folder.parent):
        for host in _hosts_if_over(run) if run.id != own.id else ():
            past.setdefault(host, []).append(run.id)
    return {host: " ".join(ids[:MOST_PAST_RUNS]) for host, ids in past.items()}


@dataclass(frozen=True)
class Rollback:
    """How a run is taken back: `force` also overwrites what someone changed since."""

    force: bool = False
    assume_drained: bool = False


def roll_back(
    of: Run, targets: Sequence[Target], reach: Reach, how: Rollback, run: Run | None, tell: Tell
) -> dict[str, Outcome]:
    """Take back run `of` on hosts; `run` keeps the record (None: check mode, nothing is written)."""
    past = own_runs_of_the_past(run) if run else {}
    given = {
        target.name: {
            "nodetune_run": run.id if run else "rehearsal",
            "nodetune_of": of.id,
            "nodetune_entries": of.entries(target.name),
            "nodetune_force": how.force,
            **(_guard_of(of.changes(target.name), how) if run else {}),
            "nodetune_take_over": past.get(target.name, ""),
            "nodetune_controller": platform.node(),
        }
        for target in targets
    }
    way = Way(reach.options, min(reach.forks, playbook.FORKS), check=run is None)
    return playbook.play("revert", targets, given, way, Recorder(run, tell) if run else tell)


def _guard_of(groups: Any, how: Rollback) -> dict[str, Any]:
    """Taking back what disturbed work disturbs it again. Which groups did something, the host knows best."""
    disturb = [group.get("group") for group in playbook.objects(groups) if group.get("disruption") not in FREE]
    return {"nodetune_guard": _out_of_use(how.assume_drained), "nodetune_guarded": disturb} if disturb else {}


def _out_of_use(assume_drained: bool) -> dict[str, bool]:
    """What must hold on a host where work is disturbed."""
    return {"gpu_idle": True, "drained": not assume_drained}


def _hosts_if_over(run: Run) -> list[str]:
    try:
        return run.hosts if run.state() in (runs.DONE, runs.INTERRUPTED) else []
    except runs.BadRun:  # a folder that tells nothing holds no lock that we may break
        return []
