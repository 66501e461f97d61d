"""The hosts that an install is about: what was read of them, what is there of the guard, and what is to be there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nodetune import profile
from nodetune.choice import Choice
from nodetune.derived import lookup
from nodetune.guard import policy as on_node
from nodetune.model import Finding, HostResult
from nodetune.slurm import gres, install, policy, program
from nodetune.slurm.places import POLICY, SERVICE, UNITS
from nodetune.slurm.plays import Answer
from nodetune.view import View

FACTS = ("own.files", "slurm.present", "slurm.config")
FETCHED = ("/run/slurm/conf/", "/conf-cache/")
"""Where a configless slurmd keeps what it was sent: writing there changes nothing."""

KEPT = ("mode", "act", "shared", "off", "seconds", "reuse_seconds", "cap_nodes_per_hour", "scontrol", "kill_strays")
"""What a new install leaves as it was installed, unless it is told otherwise."""


class BadSetting(ValueError):
    """A setting of the policy that does not exist or is out of range."""


class Guarding(Choice):
    """The audit's checks, and what an install looks at besides."""

    def facts(self) -> set[str]:
        return super().facts() | set(FACTS) | set(gres.FACTS)


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
        return self.own.get(POLICY, "")

    @property
    def policy(self) -> dict[str, Any]:
        """The installed one; empty where there is none."""
        return policy.read(self.policy_text)

    @property
    def service(self) -> str | None:
        return self.own.get(f"{UNITS}/{SERVICE}")

    @property
    def writable_conf(self) -> str:
        return "" if any(each in self.conf for each in FETCHED) else self.conf

    def failing(self) -> list[Finding]:
        """What would hold jobs now."""
        return [found for found in self.result.failing() if found.gates]


def check_settings(given: Mapping[str, Any]) -> None:
    """Before any host is asked. Raises BadSetting."""
    for name, value in given.items():
        if isinstance(policy.DEFAULTS.get(name), dict) and not isinstance(value, dict):
            raise BadSetting(f"{name} is {value!r} and not a mapping, such as {json.dumps(policy.DEFAULTS[name])}")
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
        made = policy.make(chosen, host, settings)
        on_node.Policy(made, "")
    except (TypeError, ValueError) as problem:
        raise BadSetting(f"the policy of {host}: {problem}") from None
    return made


def changes(
    nodes: Sequence[Node], made: Mapping[str, Mapping[str, Any]], how: How, there: Mapping[str, Answer]
) -> dict[str, list[dict[str, Any]]]:
    """Host → its changes. The program that is in use until now stays: jobs of before end with it."""
    found = {}
    for node in nodes:
        pythons = (how.python,) if how.python else install.PYTHONS
        conf = node.writable_conf if how.write_slurm_conf else ""
        textfile = how.textfile if how.textfile is not None else _installed_textfile(node)
        wanted = install.Wanted(made[node.name], pythons, conf, textfile, _old(there.get(node.name, Answer())))
        found[node.name] = install.install(wanted, node.policy_text)
    return found


def _installed_textfile(node: Node) -> str | None:
    return None if node.service is None else install.metrics_file(node.service)


def _old(there: Answer) -> list[str]:
    """All but the newest besides the new one: that is in use until now."""
    return [path for path in there.folders if path != program.archive().folder][:-1]


def detached(node: Node) -> list[dict[str, Any]]:
    """The first changes of an uninstall."""
    return install.detach(node.writable_conf) if node.writable_conf else []


def removed(node: Node, there: Mapping[str, Answer]) -> list[dict[str, Any]]:
    """The second: what Slurm calls no more."""
    return install.remove(there.get(node.name, Answer()).folders, node.service)
