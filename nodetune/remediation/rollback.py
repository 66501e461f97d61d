"""Taking a run back: the revert play over what its record holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from nodetune.api.model import FREE
from nodetune.foundation import nodeset, text
from nodetune.foundation.exit_codes import END_STATE_MISSED, INCOMPLETE, OK
from nodetune.foundation.stage_output import Show
from nodetune.hosts import patterns
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.hosts.target import Target
from nodetune.remediation.ansible import events, play
from nodetune.remediation.ansible.events import Event, Outcome
from nodetune.remediation.ansible.inventory import as_probed
from nodetune.remediation.ansible.play import OnEvent, PlayOptions
from nodetune.remediation.host_operations import HostOperations, out_of_use
from nodetune.remediation.request import RollbackRequest
from nodetune.remediation.runs import earlier_runs, record
from nodetune.remediation.runs.connection import connection_record
from nodetune.remediation.runs.files import RunError
from nodetune.remediation.runs.journal_copy import JournalCopy
from nodetune.remediation.runs.record import RUNNING, Run, recorded

Outcomes = Mapping[str, Outcome]


@dataclass(frozen=True)
class Undoing:
    """One run, and the hosts on which it is rolled back. `gone` are its hosts that the inventory no longer has."""

    of: Run
    targets: Sequence[Target]
    connection: ConnectionOptions
    request: RollbackRequest
    gone: Outcomes

    @property
    def title(self) -> str:
        about = self.of.about
        when = str(about.get("started", ""))[:16].replace("T", " ")
        return f"run {self.of.id} ({text.plain(about.get('command'))} of {text.plain(when)} UTC)"

    @cached_property
    def copies(self) -> Mapping[str, JournalCopy]:
        """The controller's copy of the journal of each host."""
        return {target.name: self.of.journal(target.name) for target in self.targets}

    @property
    def damages(self) -> list[str]:
        """The copies of journals that are damaged: only the host's own can then be rolled back."""
        return [copy.damage for copy in self.copies.values() if copy.damage]

    @property
    def labels(self) -> list[str]:
        """The changes of the run on the hosts."""
        return [label for target in self.targets for label in earlier_runs.labels(self.of, target.name)]

    def dry_run(self) -> Outcomes:
        """Return what a rollback would do."""
        return {**self.revert(None, lambda _event: None), **self.gone}

    def carry_out(self, show: Show) -> tuple[str, Outcomes]:
        """Roll back and record it as a run. Return its id and the result of each host."""
        request, connection, hosts = self.request, self.connection, [target.name for target in self.targets]
        settings = {"of": self.of.id, "force": request.force, "assume_drained": request.assume_drained}
        settings |= {"drain": bool(request.drain), **connection_record(connection)}
        with recorded("rollback", settings, hosts, connection.inventory, request.runs_folder) as run:
            run.undone = []
            with show.phase("rollback", len(hosts)) as phase:
                outcomes, drained = self._while_drained(run, phase.heard)
            run.undone = [host for host, outcome in outcomes.items() if whole(outcome)]
            outcomes |= {host: _left_drained(outcomes[host], why) for host, why in drained.items()}
            run.code = exit_code({**outcomes, **self.gone})
        return run.id, {**outcomes, **self.gone}

    def _while_drained(self, run: Run, on_event: OnEvent) -> tuple[dict[str, Outcome], Mapping[str, str]]:
        """Roll back; with --drain, drain the nodes first on which that disturbs work.

        Return the outcomes, and why nodes that were drained for it are not back in service.
        """
        operations = HostOperations(self.targets, self.request.on(self.connection), run, on_event)
        disturbed = [target.name for target in self.targets if self._disturbing(target.name) != []]
        ours, busy = operations.drained(disturbed) if self.request.drain and disturbed else ([], {})
        if operations.stopped:
            outcomes = {target.name: Outcome(target.name, "interrupted", operations.stopped) for target in self.targets}
        else:
            free = replace(self, targets=[target for target in self.targets if target.name not in busy])
            outcomes = free.revert(run, on_event) if free.targets else {}
            outcomes |= {host: Outcome(host, "failed", why) for host, why in busy.items()}
            operations.stopped = next((each.message for each in outcomes.values() if each.state == "interrupted"), "")
        if ours:
            operations.give_back(ours)
        return outcomes, operations.left_drained

    def revert(self, run: Run | None, on_event: OnEvent) -> dict[str, Outcome]:
        """Play it on the hosts; `run` keeps the record (None: check mode, nothing is written)."""
        for target in self.targets:
            changes = self._changes(target.name)
            if run and changes is not None:
                run.save_changes(target.name, changes)  # so that taking this back in its turn knows what disturbs
        variables = {
            target.name: {
                "nodetune_of": self.of.id,
                "nodetune_entries": [] if self.copies[target.name].damage else self.copies[target.name].entries,
                "nodetune_least": self.copies[target.name].least,
                "nodetune_force": self.request.force,
                **(self._guard(target.name) if run else {}),
            }
            for target in self.targets
        }
        play_options = PlayOptions(self.connection.options, self.connection.forks, check=run is None)
        outcomes = play.play("revert", self.targets, variables, play_options, run, on_event)
        return {host: _proven(outcome, self.copies[host]) for host, outcome in outcomes.items()}

    def _guard(self, host: str) -> dict[str, Any]:
        """Return what must be true before disruptive changes are undone: undoing them disrupts again.

        The host knows best which groups changed something.
        """
        guard = {"nodetune_guard": out_of_use(self.connection, host, self.request.assume_drained)}
        disturb = self._disturbing(host)
        if disturb is None:
            return guard
        return {**guard, "nodetune_guarded": disturb} if disturb else {}

    def _disturbing(self, host: str) -> list[Any] | None:
        """Return the groups of changes that cannot be undone without disturbing work on a host; None: any may be such."""
        groups = self._changes(host)
        copy = self.copies[host]
        if groups is None and (copy.entries or copy.damage or self.of.about.get("command") == "rollback"):
            return None  # they are lost, or it is by a version that did not keep them
        return [group.get("group") for group in events.objects(groups) if group.get("disruption") not in FREE]

    def _changes(self, host: str) -> list[Any] | None:
        """Return the groups of changes that were sent to a host; None if they are not there."""
        try:
            found = self.of.changes(host)
        except RunError:
            return None
        return found if isinstance(found, list) else None


def _proven(outcome: Outcome, copy: JournalCopy) -> Outcome:
    """Return the outcome; where the controller's copy is damaged, with that problem unless the host's own journal is whole."""
    read = [event.result.get("journaled") for event in outcome.results]
    if not copy.damage or outcome.state != "ok" or any(isinstance(each, int) and each >= copy.least for each in read):
        return outcome
    return _with_problem(outcome, "journal", f"{copy.damage}: whether all is undone is unknown")


def _left_drained(outcome: Outcome, why: str) -> Outcome:
    return _with_problem(outcome, "left drained", why)


def _with_problem(outcome: Outcome, label: str, why: str) -> Outcome:
    told = {"problems": [{"label": label, "message": why}]}
    return outcome.followed_by(Outcome(outcome.host, results=(Event(outcome.host, label, result=told),)))


def runs_of(request: RollbackRequest) -> list[tuple[Run, Sequence[str]]]:
    """Return the runs to roll back, newest first, each with the hosts. Raise RunError, also for one that is running."""
    found = _standing_on(request) if request.every is not None else [_named(request)]
    for of, _ in found:
        if of.state() == RUNNING:
            raise RunError(f"run {of.id} is still running: wait for it or stop it")
    return found


def _named(request: RollbackRequest) -> tuple[Run, Sequence[str]]:
    if request.run == "last":
        return earlier_runs.last(request.runs_folder)
    of = record.find(str(request.run), request.runs_folder)
    return of, of.hosts


def _standing_on(request: RollbackRequest) -> list[tuple[Run, Sequence[str]]]:
    spec, root = str(request.every), request.runs_folder
    found = earlier_runs.on(patterns.expand(spec), root)
    if not found:
        known = sorted({host for _, hosts in earlier_runs.standing(record.listing(root)) for host in hosts})
        others = f": nodetune changed {text.plain(nodeset.fold(known))}" if known else ""
        raise RunError(f"nothing to roll back on {text.plain(spec, 100)}{others}")
    return [*found]


def prepare(
    of: Run, hosts: Sequence[str], connection: ConnectionOptions, request: RollbackRequest, limited: bool, show: Show
) -> Undoing:
    """Select the hosts; `limited`: the command line says on which of them. Raise RunError when none is left."""
    from nodetune.remote.selected_hosts import selected_hosts

    selected = [target for target in selected_hosts(connection, show.detail) if target.name in hosts]
    targets = [as_probed(target, of.facts(target.name)) for target in selected]
    if not targets:
        raise RunError(f"run {of.id} has none of these hosts: its hosts are {', '.join(hosts[:10])}")
    left = [] if limited else sorted(set(hosts) - {target.name for target in targets})
    request.on(connection)  # a contradiction is said before anything is asked
    why = "not in the inventory: nothing was undone there"
    return Undoing(of, targets, connection, request, {host: Outcome(host, "unreachable", why) for host in left})


def joined(done: Iterable[Outcomes]) -> dict[str, Outcome]:
    """Join the outcomes of several rollbacks, host by host; the state and message are those of the first failure."""
    found: dict[str, Outcome] = {}
    for outcomes in done:
        for host, outcome in outcomes.items():
            found[host] = found.get(host, Outcome(host)).followed_by(outcome)
    return found


def whole(outcome: Outcome) -> bool:
    """Return whether nothing of the run is left on a host."""
    return outcome.state == "ok" and not outcome.gathered("problems") and not outcome.gathered("refused")


def touched(outcome: Outcome) -> bool:
    """Return whether there is something to undo or to say of a host."""
    return not whole(outcome) or any(done.get("changed") for done in outcome.gathered("done"))


def exit_code(outcomes: Outcomes) -> int:
    """Return 4 if something could not be undone, 3 if a host was not reached; the highest wins."""
    left = [outcome for outcome in outcomes.values() if not whole(outcome)]
    if any(each.state != "unreachable" or each.gathered("problems") or each.gathered("refused") for each in left):
        return END_STATE_MISSED
    return INCOMPLETE if left else OK
