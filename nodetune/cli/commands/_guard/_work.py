"""What `nodetune guard install`, `uninstall` and `diff` share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from nodetune.api.model import HostResult
from nodetune.audit import auditor
from nodetune.audit import hosts as run
from nodetune.audit.selection import Selection
from nodetune.cli import as_typed
from nodetune.cli import options as cli_options
from nodetune.cli.commands import _run
from nodetune.cli.commands._run import selected_hosts
from nodetune.foundation import text
from nodetune.foundation.exit_codes import INCOMPLETE, OK
from nodetune.guard.deploy import cluster, policy_diff
from nodetune.guard.deploy import nodes as deploy_nodes
from nodetune.guard.deploy.nodes import GuardedNode, Guarding, Installed
from nodetune.guard.deploy.playbooks import GuardPlaybooks
from nodetune.guard.deploy.policy_diff import PolicyDiff
from nodetune.guard.node.scontrol import Node, Slurm
from nodetune.hosts import nodeset
from nodetune.hosts.target import ConnectionOptions, Target
from nodetune.remediation import runs
from nodetune.remediation.runs.connection import connection_record, lasting_inventory
from nodetune.report.text import apply
from nodetune.report.text.lines import Lines, console


@dataclass(frozen=True)
class Work:
    """What is known before anything is done."""

    reach: ConnectionOptions
    targets: list[Target]
    choice: Selection
    nodes: list[GuardedNode]
    lost: list[HostResult]

    @property
    def code(self) -> int:
        return INCOMPLETE if self.lost else OK

    @property
    def asked(self) -> str:
        """The options that select the hosts, for proposed commands."""
        return as_typed.text(self.reach)

    @property
    def many(self) -> str:
        return f"{len(self.nodes)} hosts" if len(self.nodes) > 1 else self.nodes[0].name


def prepare(options: dict[str, Any], judge: bool) -> Work:
    """Probe the hosts; those that cannot be worked on count as lost."""
    choice = cli_options.choice(options.pop("profiles"), options.pop("site"))
    reach = cli_options.reach(options)
    targets = selected_hosts(reach)
    wide = (Guarding if judge else Installed)(choice.profiles, choice.site)
    results = _run.with_facts(targets, wide, reach) if judge else auditor.by_name(run.probe_hosts(targets, wide, reach))
    nodes, lost = [GuardedNode(each) for each in results if each.facts], [each for each in results if not each.facts]
    for node in [each for each in nodes if each.uid]:
        nodes.remove(node)
        lost.append(HostResult(node.name, "not root", "this takes root: log in as root, or use --become (-b)"))
    return Work(reach, targets, choice, nodes, lost)


def nodes_of(there: Slurm, wanted: Iterable[str]) -> list[Node]:
    """Return these nodes, or all, as Slurm knows them. Raise ClusterError, which says where Slurm can be asked."""
    try:
        return cluster.nodes(there, wanted)
    except cluster.ClusterError as problem:
        where = (
            ": run this on a machine of the cluster, or set SLURM_CONF" if str(problem).startswith("scontrol") else ""
        )
        raise cluster.ClusterError(f"{problem}{where}") from None


def policies(work: Work, given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the new policy of each host. Raise nodes.SettingError or yaml_lines.FileError."""
    made: dict[str, dict[str, Any]] = {}
    for choice, hosts in work.choice.for_hosts(node.name for node in work.nodes):
        made |= deploy_nodes.policies([node for node in work.nodes if node.name in hosts], choice, given)
    return {node.name: made[node.name] for node in work.nodes}


def differences(nodes: Iterable[GuardedNode], made: Mapping[str, Mapping[str, Any]]) -> dict[str, PolicyDiff]:
    """Return what the new policy of each host would change."""
    return {node.name: policy_diff.compare(node.policy, made[node.name]) for node in nodes}


def recorded(command: str, options: Mapping[str, Any], work: Work, root: Path | None) -> runs.Run:
    """Begin the record; it keeps the way to the hosts, which a rollback takes again."""
    hosts = [node.name for node in work.nodes]
    way = {"inventory": work.reach.inventory, **connection_record(work.reach)}
    return runs.Run.create(command, {**way, **options}, hosts, lasting_inventory(work.reach.inventory), root)


def show(stream: TextIO, plays: GuardPlaybooks) -> int:
    """Print the result of a dry run, and return the exit code."""
    diffs = apply.diffs_of(plays.outcomes)
    apply.print_diffs(stream, diffs, len(diffs) == 1)
    _problems(stream, plays)
    wrong = sum(map(len, apply.problems_of(plays.outcomes).values())) + len(apply.failures_of(plays.outcomes))
    apply.print_dry_run(stream, diffs, wrong)
    return plays.code()


def tell(stream: TextIO, plays: GuardPlaybooks, problem: str) -> None:
    changed = {
        host: [str(each["label"]) for each in outcome.gathered("done") if each.get("changed")]
        for host, outcome in plays.outcomes.items()
    }
    out = Lines(console(stream))
    busy = [host for host, labels in changed.items() if labels]
    out.line(
        (text.count(sum(map(len, changed.values())), "change"), "bold"), f" on {nodeset.fold(busy)}" if busy else ""
    )
    _problems(stream, plays)
    if problem:
        out.line(("problem  ", "bold red"), problem)


def _problems(stream: TextIO, plays: GuardPlaybooks) -> None:
    problems, failed = apply.problems_of(plays.outcomes), apply.failures_of(plays.outcomes)
    apply.print_problems(stream, problems, failed, len(problems) == 1)
