"""The hosts that an install is about: what was read of them, what is there of the guard, and what is to be there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nodetune.api.derived import lookup
from nodetune.api.facts_view import FactsView
from nodetune.api.model import Finding, HostResult
from nodetune.audit.selection import Selection
from nodetune.config import profile
from nodetune.foundation import UserError
from nodetune.guard.deploy import archive, gateable, gres, install, policy
from nodetune.guard.deploy.paths import POLICY, SERVICE, UNITS
from nodetune.guard.node import policy as on_node

FACTS = ("own.files", "slurm.present", "slurm.config")
FETCHED = ("/run/slurm/conf/", "/conf-cache/")
"""Where a configless slurmd keeps what it was sent: writing there changes nothing."""

KEPT = (
    "mode",
    "act",
    "shared",
    "off",
    "seconds",
    "reuse_seconds",
    "cap_nodes_per_hour",
    "scontrol",
    on_node.KILL_LEFTOVERS,
)
"""What a new install leaves as it was installed, unless it is told otherwise."""


class SettingError(UserError):
    """A setting of the policy that does not exist or is out of range."""


class Guarding(Selection):
    """The audit's checks, and what an install looks at besides."""

    def facts(self) -> set[str]:
        return super().facts() | set(FACTS) | set(gres.FACTS)


class Installed(Selection):
    """Only what tells what is installed."""

    def facts(self) -> set[str]:
        return set(FACTS)


@dataclass(frozen=True)
class InstallOptions:
    """What to install: see the options of the same names. `textfile` is None where no timer was asked for."""

    python: str | None = None
    write_slurm_conf: bool = False
    reconfigure: bool = False
    textfile: str | None = None


@dataclass(frozen=True)
class NodeAnswer:
    """What a host answers.

    `slurm`: the settings of the running Slurm (None: it cannot be asked); `folders`: the installed programs, oldest
    first; `entry`: why the program that Slurm calls cannot run there (empty: it can).
    """

    slurm: Mapping[str, str] | None = None
    folders: tuple[str, ...] = ()
    entry: str = ""


class GuardedNode:
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
        return FactsView(self.facts, (name,), lookup).readable(name)

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
        """Return the findings that would hold jobs now."""
        return [found for found in self.result.failing() if found.gates]


def check_settings(given: Mapping[str, Any]) -> None:
    """Check settings before any host is asked. Raise SettingError."""
    for name, value in given.items():
        if isinstance(policy.DEFAULTS.get(name), dict) and not isinstance(value, dict):
            raise SettingError(f"{name} is {value!r} and not a mapping, such as {json.dumps(policy.DEFAULTS[name])}")
    _policy(profile.Profile(("training",), (), frozenset()), "all hosts", given)


def policies(nodes: Sequence[GuardedNode], choice: Selection, given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the new policy of each host. Raise SettingError or yaml_lines.FileError."""
    resolved: dict[tuple[str, ...], profile.Profile] = {}
    found = {}
    for node in nodes:
        names, _ = profile.matching(node.facts, choice.profiles or (choice.site.profile if choice.site else ()))
        if names not in resolved:
            resolved[names] = profile.resolve(names, choice.site)
            gateable.require(resolved[names], choice.site)
        kept = {name: node.policy[name] for name in KEPT if name in node.policy}
        found[node.name] = _policy(resolved[names], node.name, {**kept, **given})
    return found


def _policy(chosen: profile.Profile, host: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    try:
        made = policy.make(chosen, host, settings)
        on_node.Policy(made, "")
    except (TypeError, ValueError) as problem:
        raise SettingError(f"the policy of {host}: {problem}") from None
    return made


def changes(
    nodes: Sequence[GuardedNode],
    made: Mapping[str, Mapping[str, Any]],
    how: InstallOptions,
    there: Mapping[str, NodeAnswer],
) -> dict[str, list[dict[str, Any]]]:
    """Return the changes of each host. The current program stays: running jobs end with it."""
    found = {}
    for node in nodes:
        pythons = (how.python,) if how.python else install.PYTHONS
        conf = node.writable_conf if how.write_slurm_conf else ""
        textfile = how.textfile if how.textfile is not None else _installed_textfile(node)
        wanted = install.Wanted(made[node.name], pythons, conf, textfile, _old(there.get(node.name, NodeAnswer())))
        found[node.name] = install.install(wanted, node.policy_text)
    return found


def _installed_textfile(node: GuardedNode) -> str | None:
    return None if node.service is None else install.metrics_file(node.service)


def _old(there: NodeAnswer) -> list[str]:
    """Return all old programs but the newest, which is in use until now."""
    return [path for path in there.folders if path != archive.archive().folder][:-1]


def detached(node: GuardedNode) -> list[dict[str, Any]]:
    """Return the first changes of an uninstall."""
    return install.detach(node.writable_conf) if node.writable_conf else []


def removed(node: GuardedNode, there: Mapping[str, NodeAnswer]) -> list[dict[str, Any]]:
    """Return the second changes of an uninstall: what Slurm no longer calls."""
    return install.remove(there.get(node.name, NodeAnswer()).folders, node.service)
