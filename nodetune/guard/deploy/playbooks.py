"""Bringing the guard to nodes by Ansible, as a run that is recorded, and asking them what they have."""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nodetune.foundation import text
from nodetune.foundation.exit_codes import END_STATE_MISSED, OK
from nodetune.guard.deploy import archive as deploy_archive
from nodetune.guard.deploy import slurm_conf
from nodetune.guard.deploy.nodes import GuardedHosts, GuardedNode, NodeAnswer
from nodetune.guard.deploy.paths import HOME
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.hosts.target import Target
from nodetune.remediation.ansible import events, play
from nodetune.remediation.ansible.events import Outcome
from nodetune.remediation.ansible.play import OnEvent, PlayOptions
from nodetune.remediation.runs import record
from nodetune.remediation.runs.connection import connection_record, lasting_inventory
from nodetune.remediation.runs.record import Run

MAX_SECONDS = 1 << 40
"""Of a time on a node: some 30,000 years."""


@dataclass(frozen=True)
class GuardReport:
    """The result of a command. `run_id` is empty after a dry run; `problem` has other errors.

    `answers`: the final answers of Slurm's nodes; `written`: slurm.conf has the guard's lines on every host;
    `called`: nodes whose Slurm still calls the guard, which keep its files.
    """

    outcomes: Mapping[str, Outcome]
    code: int
    run_id: str = ""
    problem: str = ""
    answers: Mapping[str, NodeAnswer] = field(default_factory=dict)
    written: bool = False
    called: Sequence[str] = ()


def recorded(
    command: str, hosts: GuardedHosts, connection: ConnectionOptions, settings: Mapping[str, Any], root: Path | None
) -> AbstractContextManager[Run]:
    """Record a run, with the way to the hosts, which a rollback takes again."""
    reached = {"inventory": connection.inventory, **connection_record(connection)}
    names, inventory = [node.name for node in hosts.nodes], lasting_inventory(connection.inventory)
    return record.recorded(command, {**reached, **settings}, names, inventory, root)


class GuardPlaybooks:
    """Ansible on the hosts of one command; `run` keeps the record (None: check mode)."""

    def __init__(
        self, targets: Iterable[Target], connection: ConnectionOptions, run: Run | None, on_event: OnEvent
    ) -> None:
        self._targets = {target.name: target for target in targets}
        self._run, self._on_event = run, on_event
        self._options = PlayOptions(connection.options, connection.forks, check=run is None)
        self._earlier: dict[str, list[Any]] = {}  # what the run changed before: its rollback undoes both
        self.outcomes: dict[str, Outcome] = {}

    def ask(self, nodes: Sequence[GuardedNode]) -> dict[str, NodeAnswer]:
        given = {node.name: {"nodetune_slurm_conf": node.conf, "nodetune_home": HOME} for node in nodes}
        return {host: _answer(outcome) for host, outcome in self._play("guard-ask", given).items()}

    def install(self, groups: Mapping[str, Sequence[Mapping[str, Any]]], pythons: Sequence[str]) -> None:
        """Carry out an install on hosts with one of these Pythons: the program goes there first."""
        archive = deploy_archive.archive()
        with tempfile.NamedTemporaryFile(suffix=".zip") as file:
            file.write(archive.content)
            file.flush()
            given = {"nodetune_archive": file.name, "nodetune_archive_there": archive.there}
            self._change("guard", groups, {**given, "nodetune_pythons": list(pythons)})

    def change(self, groups: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        self._change("remediate", groups, {})

    def _change(
        self, playbook: str, groups: Mapping[str, Sequence[Mapping[str, Any]]], archive: Mapping[str, Any]
    ) -> None:
        if self._run:
            for host, changes in groups.items():
                earlier = self._earlier.setdefault(host, self._run.changes(host) or [])
                self._run.save_changes(host, [*earlier, *changes])
        given = {host: {"nodetune_groups": list(changes), **archive} for host, changes in groups.items() if changes}
        for host, outcome in self._play(playbook, given).items():
            self.outcomes[host] = self.outcomes.get(host, Outcome(host)).followed_by(outcome)

    def reconfigure(self, nodes: Sequence[GuardedNode]) -> str:
        """Make Slurm read its configuration again, from one host. Return what went wrong, or ""."""
        some = next((node for node in nodes if node.slurm), None)
        if some is None or self._run is None:
            return ""
        outcome = self._play("guard-reconfigure", {some.name: {"nodetune_slurm_conf": some.conf}})[some.name]
        return "" if outcome.state == "ok" else f"scontrol reconfigure on {some.name}: {outcome.message}"

    def _play(self, name: str, variables: Mapping[str, Mapping[str, Any]]) -> dict[str, Outcome]:
        targets = [self._targets[host] for host in variables]
        return play.play(name, targets, variables, self._options, self._run, self._on_event)

    def code(self) -> int:
        """Return 4 if a change failed."""
        wrong = any(each.state != "ok" or each.gathered("problems") for each in self.outcomes.values())
        return END_STATE_MISSED if wrong else OK


def _modified(file: Mapping[str, Any]) -> float:
    """Return the modification time of a file; if invalid, the oldest possible."""
    found = file.get("mtime")
    return found if isinstance(found, int | float) and 0 <= found < MAX_SECONDS else 0


def _answer(outcome: Outcome) -> NodeAnswer:
    told = {event.task: event.result for event in outcome.results}
    slurm, programs = told.get("Slurm", {}), told.get("Programs", {})
    files = sorted(events.objects(programs.get("files")), key=_modified)
    found = deploy_archive.folders(str(each.get("path")) for each in files)
    settings = slurm_conf.running(str(slurm.get("stdout", ""))) if slurm.get("rc") == 0 else None
    entry = told.get("Entry", {})
    problem = "" if entry.get("rc") == 0 else str(entry.get("stderr") or entry.get("msg") or "it did not run")
    return NodeAnswer(settings or None, tuple(found), text.plain(problem, 200))
