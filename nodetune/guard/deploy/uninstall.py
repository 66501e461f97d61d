"""Remove the guard from hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nodetune.audit import auditor
from nodetune.audit import hosts as audit_hosts
from nodetune.foundation.exit_codes import END_STATE_MISSED, OK
from nodetune.foundation.show import Show, Silent
from nodetune.guard.deploy import node_changes, slurm_conf
from nodetune.guard.deploy.nodes import GuardedHosts, GuardedNode, Installed, NodeAnswer, guarded_hosts
from nodetune.guard.deploy.playbooks import GuardPlaybooks, GuardReport, recorded
from nodetune.guard.deploy.request import UninstallRequest
from nodetune.remote.selected_hosts import selected_hosts


@dataclass(frozen=True)
class UninstallReport(GuardReport):
    """The result of an uninstall. `called`: nodes whose Slurm still calls the guard, which keep its files."""

    called: Sequence[str] = ()


def prepare(request: UninstallRequest, show: Show) -> GuardedHosts:
    """Look at what is installed on hosts."""
    targets = selected_hosts(request.connection, show.detail)
    return guarded_hosts(targets, auditor.by_name(audit_hosts.probe_hosts(targets, Installed(), request.connection)))


def dry_run(request: UninstallRequest, hosts: GuardedHosts) -> GuardReport:
    """Return what an uninstall would change."""
    playbooks = GuardPlaybooks(hosts.targets, request.connection, None, Silent().heard)
    answers = playbooks.ask(hosts.nodes)
    playbooks.change({node.name: [*_detached(node), *_removed(node, answers)] for node in hosts.nodes})
    return GuardReport(playbooks.outcomes, max(hosts.code, playbooks.code()))


def carry_out(request: UninstallRequest, hosts: GuardedHosts, show: Show) -> UninstallReport:
    """Take the lines out of slurm.conf, then remove everything else where Slurm no longer calls it. Raise OSError."""
    nodes, connection = hosts.nodes, request.connection
    with recorded("guard uninstall", hosts, connection, {}, request.runs_folder) as run:
        with show.phase("guard uninstall", len(nodes)) as phase:
            playbooks = GuardPlaybooks(hosts.targets, connection, run, phase.heard)
            playbooks.change({node.name: _detached(node) for node in nodes})
            problem = playbooks.reconfigure(nodes) if request.reconfigure else ""
            answers = playbooks.ask(nodes)
            called = [node for node in nodes if _is_called(node, answers)]
            free = [node for node in nodes if node not in called]
            playbooks.change({node.name: [*_detached(node), *_removed(node, answers)] for node in free})
        run.code = max(playbooks.code(), END_STATE_MISSED if problem or called else OK, hosts.code)
    return UninstallReport(playbooks.outcomes, run.code, run.id, problem, [node.name for node in called])


def _is_called(node: GuardedNode, answers: Mapping[str, NodeAnswer]) -> bool:
    return slurm_conf.calls_us(answers.get(node.name, NodeAnswer()).slurm or {})


def _detached(node: GuardedNode) -> list[dict[str, Any]]:
    """Return the first changes: slurm.conf as it was."""
    return node_changes.detach(node.writable_conf) if node.writable_conf else []


def _removed(node: GuardedNode, answers: Mapping[str, NodeAnswer]) -> list[dict[str, Any]]:
    """Return the second changes: what Slurm no longer calls."""
    return node_changes.remove(answers.get(node.name, NodeAnswer()).folders, node.service)
