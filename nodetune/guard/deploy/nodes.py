"""The hosts that a command works on: what was read of them, what is there of the guard, and their new policies."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nodetune import data
from nodetune.api.derived import lookup
from nodetune.api.facts_view import FactsView
from nodetune.api.model import Finding, HostResult
from nodetune.audit.selection import Selection
from nodetune.config import profile
from nodetune.foundation.exit_codes import INCOMPLETE, OK
from nodetune.guard.deploy import gres, node_changes, node_state, policy
from nodetune.guard.deploy.paths import POLICY, SERVICE, UNITS
from nodetune.guard.deploy.request import PolicySettings
from nodetune.hosts.target import Target
from nodetune.remediation.ansible.inventory import as_probed

FACTS = ("own.files", "slurm.present", "slurm.config", "host.dmi.product_name")
FETCHED = ("/run/slurm/conf/", "/conf-cache/")
"""Where a configless slurmd keeps what it was sent: writing there changes nothing."""

KEPT = [name for name in policy.DEFAULTS if name not in ("environment", "snapshot")]
"""Settings that a new installation keeps unless options change them."""


class Guarding(Selection):
    """The audit's checks and additional facts for an installation."""

    def facts(self) -> set[str]:
        return super().facts() | set(FACTS) | set(gres.FACTS)


class Installed(Selection):
    """Only the facts about the installed guard."""

    def facts(self) -> set[str]:
        return {*FACTS, *node_state.FACTS}


@dataclass(frozen=True)
class NodeAnswer:
    """The answer of a host.

    `slurm`: the settings of the running Slurm (None: unknown); `folders`: the installed programs, oldest first;
    `entry`: why the program that Slurm calls cannot run there (empty: it can).
    """

    slurm: Mapping[str, str] | None = None
    folders: tuple[str, ...] = ()
    entry: str = ""


class GuardedNode:
    """One host that was probed.

    `policy`: the installed one (empty: none); `textfile`: the metrics file of the installed timer (None: no timer).
    """

    def __init__(self, result: HostResult) -> None:
        assert result.facts is not None  # noqa: S101  (for the type checker: the caller selected these)
        self.name, self.result, self.facts = result.host, result, result.facts
        own: Mapping[str, str] = self._fact("own.files") or {}
        self.policy_text, self.service = own.get(POLICY, ""), own.get(f"{UNITS}/{SERVICE}")
        self.policy = policy.read(self.policy_text)
        self.textfile = None if self.service is None else node_changes.metrics_file(self.service)
        config = self._fact("slurm.config") or {}
        self.slurm = bool(config) or self._fact("slurm.present") is True
        self.conf, self.settings = str(config.get("file", "")), dict(config.get("settings", {}))
        self.writable_conf = "" if any(each in self.conf for each in FETCHED) else self.conf
        self.product = str(self._fact("host.dmi.product_name") or "")
        self.uid = self.facts.about.get("uid")

    def _fact(self, name: str) -> Any:
        return FactsView(self.facts, (name,), lookup).readable(name)

    def failing(self) -> list[Finding]:
        """Return the findings that would hold jobs now."""
        return [found for found in self.result.failing() if found.gates]


@dataclass(frozen=True)
class GuardedHosts:
    """The hosts of a command. `lost` are those that cannot be worked on, with the reason."""

    targets: list[Target]
    nodes: list[GuardedNode]
    lost: list[HostResult]

    @property
    def code(self) -> int:
        return INCOMPLETE if self.lost else OK

    @property
    def summary(self) -> str:
        """How many hosts there are, or the name of the only one."""
        return f"{len(self.nodes)} hosts" if len(self.nodes) > 1 else self.nodes[0].name


def guarded_hosts(targets: list[Target], results: Sequence[HostResult]) -> GuardedHosts:
    """Return hosts that were probed; those without root count as lost."""
    nodes = [GuardedNode(each) for each in results if each.facts]
    lost = [each for each in results if not each.facts]
    why = "root is needed: log in as root, or use --become (-b)"
    lost += [HostResult(node.name, "not root", why) for node in nodes if node.uid]
    seen = {each.host: each.facts for each in results}
    probed = [as_probed(target, seen.get(target.name)) for target in targets]
    return GuardedHosts(probed, [node for node in nodes if not node.uid], lost)


def new_policies(
    nodes: Iterable[GuardedNode], selection: Selection, settings: PolicySettings
) -> dict[str, dict[str, Any]]:
    """Return the new policy of each host. Raise SettingError or yaml_lines.FileError."""
    resolved: dict[tuple[tuple[str, ...], int], profile.Profile] = {}
    found = {}
    for node in nodes:
        site = selection.site_of(node.name)
        names, _ = profile.matching(node.facts, selection.profiles or (site.profile if site else ()))
        key = names, id(site)
        if key not in resolved:
            resolved[key] = profile.resolve(names, site)
            policy.require_gateable(resolved[key], site)
        kept = {name: node.policy[name] for name in KEPT if name in node.policy}
        made = policy.checked(resolved[key], node.name, {**kept, **settings.by_name})
        found[node.name] = {**made, "gpus": made["gpus"] or data.gpus_of_machine(node.product)}
    return found
