"""The guard on nodes: what is there, what is to be there, and bringing it there by Ansible, as a run that is recorded."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodetune import guardinstall, guardpolicy, playbook, profile, rollout, runs
from nodetune.commands import _run, _slurm_gres
from nodetune.derived import lookup
from nodetune.guard import policy as on_node
from nodetune.model import Finding, HostResult
from nodetune.outcome import NOT_REACHED
from nodetune.playbook import Outcome, Way
from nodetune.transport import Target
from nodetune.view import View
from nodetune.workflow import Choice, Reach

FACTS = ("own.files", "slurm.present", "slurm.config")
FETCHED = ("/run/slurm/conf/", "/conf-cache/")
"""Where a configless slurmd keeps what it was sent: writing there changes nothing."""

KEPT = ("mode", "act", "shared", "off", "seconds", "reuse_seconds", "cap_nodes_per_hour", "scontrol")
"""What a new install leaves as it was installed, unless it is told otherwise."""


class BadSetting(ValueError):
    """A setting of the policy that does not exist or is out of range."""


class Guarding(Choice):
    """The audit's checks, and what an install looks at besides."""

    def facts(self) -> set[str]:
        return super().facts() | set(FACTS) | set(_slurm_gres.FACTS)


class Installed(Choice):
    """Only what tells what is installed."""

    def facts(self) -> set[str]:
        return set(FACTS)


@dataclass(frozen=True)
class How:
    """What to install: see the options of the same names. `textfile` is None where no timer was asked for."""

    python: str | None = None
    write_slurm_conf: bool = False
    reconfigure: bool = False
    textfile: str | None = None


class Node:
    """One host that was probed."""

    def __init__(self, result: HostResult) -> None:
        assert result.facts is not None  # noqa: S101  (for the type checker: the caller selected these)
        self.name, self.result, self.facts = result.host, result, result.facts
        self.own: Mapping[str, str] = self._fact("own.files") or {}
        config = self._fact("slurm.config") or {}
        self.slurm = bool(config) or self._fact("slurm.present") is True
        self.conf, self.settings = str(config.get("file", "")), dict(config.get("settings", {}))
        self.uid = self.facts.about.get("uid")

    def _fact(self, name: str) -> Any:
        return View(self.facts, (name,), lookup).readable(name)

    @property
    def policy_text(self) -> str:
        return self.own.get(guardinstall.POLICY, "")

    @property
    def policy(self) -> dict[str, Any]:
        """The installed one; empty where there is none."""
        return guardinstall.read_policy(self.policy_text)

    @property
    def service(self) -> str | None:
        return self.own.get(f"{guardinstall.UNITS}/{guardinstall.SERVICE}")

    @property
    def writable_conf(self) -> str:
        return "" if any(each in self.conf for each in FETCHED) else self.conf

    def failing(self) -> list[Finding]:
        """What would hold jobs now."""
        return [found for found in self.result.failing() if found.gates]


def check_settings(given: Mapping[str, Any]) -> None:
    """Before any host is asked. Raises BadSetting."""
    for name, value in given.items():
        if isinstance(guardpolicy.DEFAULTS.get(name), dict) and not isinstance(value, dict):
            raise BadSetting(f"{name} is {value!r} and not a mapping, such as {json.dumps(guardpolicy.DEFAULTS[name])}")
    _policy(profile.Profile(("training",), (), frozenset()), "all hosts", given)


def policies(nodes: Sequence[Node], choice: Choice, given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Host → the policy that it is to have. Raises BadSetting, located.BadFile."""
    resolved: dict[tuple[str, ...], profile.Profile] = {}
    found = {}
    for node in nodes:
        names, _ = profile.matching(node.facts, choice.profiles or (choice.site.profile if choice.site else ()))
        if names not in resolved:
            resolved[names] = profile.resolve(names, choice.site)
        kept = {name: node.policy[name] for name in KEPT if name in node.policy}
        found[node.name] = _policy(resolved[names], node.name, {**kept, **given})
    return found


def _policy(chosen: profile.Profile, host: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    try:
        made = guardpolicy.make(chosen, host, settings)
        on_node.Policy(made, "")
    except (TypeError, ValueError) as problem:
        raise BadSetting(f"the policy of {host}: {problem}") from None
    return made


@dataclass(frozen=True)
class Answer:
    """What a host says: its running Slurm's settings (None: it cannot be asked), and the programs there, oldest first."""

    slurm: Mapping[str, str] | None = None
    folders: tuple[str, ...] = ()


class Plays:
    """Ansible on the hosts of one command; `run` keeps the record (None: check mode)."""

    def __init__(self, targets: Iterable[Target], reach: Reach, run: runs.Run | None, tell: rollout.Tell) -> None:
        self._targets = {target.name: target for target in targets}
        self._run, self._tell = run, tell
        self._way = Way(reach.options, min(reach.forks, playbook.FORKS), check=run is None)
        self.outcomes: dict[str, Outcome] = {}

    def ask(self, nodes: Sequence[Node]) -> dict[str, Answer]:
        given = {node.name: {"nodetune_slurm_conf": node.conf, "nodetune_home": guardinstall.HOME} for node in nodes}
        return {host: _answer(outcome) for host, outcome in self._play("guard-ask", given).items()}

    def change(self, groups: Mapping[str, Sequence[Mapping[str, Any]]], archive: Path | None = None) -> None:
        """Carry out groups of changes; with an archive, that program goes to the hosts first."""
        if self._run:
            for host, made in groups.items():
                self._run.save_changes(host, list(made))
        past = rollout.own_runs_of_the_past(self._run) if self._run else {}
        there = {"nodetune_archive": str(archive), "nodetune_archive_there": guardinstall.program().archive_there}
        given = {
            host: {
                "nodetune_run": self._run.id if self._run else "rehearsal",
                "nodetune_groups": list(made),
                "nodetune_take_over": past.get(host, ""),
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
        heard = rollout.Recorder(self._run, self._tell) if self._run else self._tell
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
    found = guardinstall.folders(str(each.get("path")) for each in files)
    settings = guardinstall.running_settings(str(slurm.get("stdout", ""))) if slurm.get("rc") == 0 else None
    return Answer(settings or None, tuple(found))


def install_groups(
    nodes: Sequence[Node], made: Mapping[str, Mapping[str, Any]], how: How, there: Mapping[str, Answer]
) -> dict[str, list[dict[str, Any]]]:
    """Host → its changes. The program that is in use until now stays: jobs of before end with it."""
    found = {}
    for node in nodes:
        pythons = (how.python,) if how.python else guardinstall.PYTHONS
        conf = node.writable_conf if how.write_slurm_conf else ""
        textfile = how.textfile if how.textfile is not None else _installed_textfile(node)
        wanted = guardinstall.Wanted(made[node.name], pythons, conf, textfile, _old(there.get(node.name, Answer())))
        found[node.name] = guardinstall.install(wanted, node.policy_text)
    return found


def _installed_textfile(node: Node) -> str | None:
    return None if node.service is None else guardinstall.metrics_file(node.service)


def _old(there: Answer) -> list[str]:
    """All but the newest besides the new one: that is in use until now."""
    return [path for path in there.folders if path != guardinstall.program().folder][:-1]


def probed(targets: list[Target], choice: Choice, reach: Reach, judge: bool) -> tuple[list[Node], list[HostResult]]:
    """(hosts that answered, those that did not)."""
    from nodetune import workflow

    wide = (Guarding if judge else Installed)(choice.profiles, choice.site, choice.select, choice.ignore)
    if judge:
        results = _run.with_facts(targets, wide, reach)
    else:
        results = workflow.by_name(workflow.probe_hosts(targets, wide, reach))
    return [Node(each) for each in results if each.facts], [each for each in results if not each.facts]


def recorded(command: str, options: Mapping[str, Any], nodes: Sequence[Node], root: Path | None) -> runs.Run:
    """Begin the record; it keeps the way to the hosts, which a rollback takes again."""
    inventory = options.get("inventory")
    lasting = str(Path(inventory).absolute()) if inventory and Path(inventory).exists() else inventory
    return runs.Run.create(command, options, [node.name for node in nodes], lasting, root)
