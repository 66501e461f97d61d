"""Bringing the guard to nodes by Ansible, as a run that is recorded, and asking them what they have."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nodetune import playbook, show
from nodetune.field import Recorder, Tell
from nodetune.outcome import NOT_REACHED
from nodetune.playbook import Outcome, Way
from nodetune.runs import Run, past
from nodetune.slurm import conf, program
from nodetune.slurm.places import HOME
from nodetune.transport import Target
from nodetune.workflow import Reach

if TYPE_CHECKING:
    from nodetune.slurm.nodes import Node


@dataclass(frozen=True)
class Answer:
    """What a host says: its running Slurm's settings (None: it cannot be asked), and the programs there, oldest first;
    and why the entry that Slurm calls cannot be run there (empty: it can).
    """

    slurm: Mapping[str, str] | None = None
    folders: tuple[str, ...] = ()
    entry: str = ""


class Plays:
    """Ansible on the hosts of one command; `run` keeps the record (None: check mode)."""

    def __init__(self, targets: Iterable[Target], reach: Reach, run: Run | None, tell: Tell) -> None:
        self._targets = {target.name: target for target in targets}
        self._run, self._tell = run, tell
        self._way = Way(reach.options, min(reach.forks, playbook.FORKS), check=run is None)
        self.outcomes: dict[str, Outcome] = {}

    def ask(self, nodes: Sequence[Node]) -> dict[str, Answer]:
        given = {node.name: {"nodetune_slurm_conf": node.conf, "nodetune_home": HOME} for node in nodes}
        return {host: _answer(outcome) for host, outcome in self._play("guard-ask", given).items()}

    def install(self, groups: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Carry out an install: the program goes to the hosts first."""
        with tempfile.NamedTemporaryFile(suffix=".zip") as archive:
            archive.write(program.archive().content)
            archive.flush()
            self.change(groups, Path(archive.name))

    def change(self, groups: Mapping[str, Sequence[Mapping[str, Any]]], archive: Path | None = None) -> None:
        """Carry out groups of changes; with an archive, that program goes to the hosts first."""
        if self._run:
            for host, made in groups.items():
                self._run.save_changes(host, list(made))
        over = past.over(self._run) if self._run else {}
        there = {"nodetune_archive": str(archive), "nodetune_archive_there": program.archive().there}
        given = {
            host: {
                "nodetune_run": self._run.id if self._run else "rehearsal",
                "nodetune_groups": list(made),
                "nodetune_take_over": over.get(host, ""),
                "nodetune_controller": platform.node(),
                **(there if archive else {}),
            }
            for host, made in groups.items()
            if made
        }
        for host, outcome in self._play("guard" if archive else "remediate", given).items():
            self.outcomes[host] = _joined(self.outcomes.get(host), outcome)

    def reconfigure(self, nodes: Sequence[Node]) -> str:
        """Let Slurm read its configuration anew, asked on one host. Returns what went wrong, or ""."""
        some = next((node for node in nodes if node.slurm), None)
        if some is None or self._run is None:
            return ""
        outcome = self._play("guard-reconfigure", {some.name: {"nodetune_slurm_conf": some.conf}})[some.name]
        return "" if outcome.state == "ok" else f"scontrol reconfigure on {some.name}: {outcome.message}"

    def _play(self, name: str, given: Mapping[str, Mapping[str, Any]]) -> dict[str, Outcome]:
        if not given:
            return {}
        heard = Recorder(self._run, self._tell) if self._run else self._tell
        return playbook.play(name, [self._targets[host] for host in given], given, self._way, heard)

    def code(self) -> int:
        """4 where something did not come out."""
        wrong = any(each.state != "ok" or each.gathered("problems") for each in self.outcomes.values())
        return NOT_REACHED if wrong else 0


def _joined(first: Outcome | None, second: Outcome) -> Outcome:
    """Two plays of one run on a host as one outcome; the first that went wrong names the state."""
    if first is None:
        return second
    worse = first if first.state != "ok" else second
    return Outcome(second.host, worse.state, worse.message, (*first.results, *second.results))


def _answer(outcome: Outcome) -> Answer:
    told = {event.task: event.result for event in outcome.results}
    slurm, programs = told.get("Slurm", {}), told.get("Programs", {})
    files = sorted(playbook.objects(programs.get("files")), key=lambda each: float(each.get("mtime") or 0))
    found = program.folders(str(each.get("path")) for each in files)
    settings = conf.running(str(slurm.get("stdout", ""))) if slurm.get("rc") == 0 else None
    entry = told.get("Entry", {})
    problem = "" if entry.get("rc") == 0 else str(entry.get("stderr") or entry.get("msg") or "it did not run")
    return Answer(settings or None, tuple(found), show.plain(problem, 200))
