"""Remove the guard from hosts."""

from collections.abc import Iterable, Mapping
from typing import Any

from nodetune.audit import auditor
from nodetune.audit import hosts as audit_hosts
from nodetune.foundation import by_key
from nodetune.foundation import text as plain_text
from nodetune.foundation.exit_codes import END_STATE_MISSED, OK
from nodetune.foundation.stage_output import Show, Silent
from nodetune.guard.deploy import cluster, node_state, slurm_conf
from nodetune.guard.deploy.node_changes import detach, remove
from nodetune.guard.deploy.nodes import GuardedHosts, GuardedNode, Installed, NodeAnswer, guarded_hosts
from nodetune.guard.deploy.playbooks import GuardPlaybooks, GuardReport, recorded
from nodetune.guard.deploy.request import UninstallRequest
from nodetune.guard.node import drain
from nodetune.remote.selected_hosts import selected_hosts


def prepare(request: UninstallRequest, show: Show) -> GuardedHosts:
    """Look at what is installed on hosts."""
    targets = selected_hosts(request.connection, show.detail)
    return guarded_hosts(targets, auditor.by_name(audit_hosts.probe_hosts(targets, Installed(), request.connection)))


def drained(hosts: GuardedHosts) -> tuple[list[str], bool]:
    """Return the nodes of Slurm that the guard drained, and whether Slurm was asked: else they were, and may still be."""
    notes = (each for node in hosts.nodes for each in node_state.notes(node.facts))
    noted = by_key((plain_text.plain(str(each.get("node"))), each) for each in notes)
    if not noted:
        return [], True
    try:
        known = cluster.nodes(cluster.here(), ())
    except cluster.ClusterError:
        return sorted(noted), False
    return [each.name for each in known if each.out_of_service and drain.ours(each, noted.get(each.name, ()))], True


def dry_run(request: UninstallRequest, hosts: GuardedHosts) -> GuardReport:
    """Return what an uninstall would change."""
    playbooks = GuardPlaybooks(hosts.targets, request.connection, None, Silent().heard)
    playbooks.change(_changes(hosts.nodes, playbooks.ask(hosts.nodes)))
    return GuardReport(playbooks.outcomes, max(hosts.code, playbooks.code()))


def carry_out(request: UninstallRequest, hosts: GuardedHosts, show: Show) -> GuardReport:
    """Take the lines out of slurm.conf, then remove everything else where Slurm no longer calls it. Raise OSError."""
    nodes, connection = hosts.nodes, request.connection
    with recorded("guard uninstall", hosts, connection, {}, request.runs_folder) as run:
        with show.phase("guard uninstall", len(nodes)) as phase:
            playbooks = GuardPlaybooks(hosts.targets, connection, run, phase.heard)
            playbooks.change({node.name: detach(node.writable_conf) for node in nodes})
            problem = playbooks.reconfigure(nodes) if request.reconfigure else ""
            answers = playbooks.ask(nodes)
            called = [name for name, answer in answers.items() if slurm_conf.calls_us(answer.slurm or {})]
            playbooks.change(_changes([node for node in nodes if node.name not in called], answers))
        run.code = max(playbooks.code(), END_STATE_MISSED if problem or called else OK, hosts.code)
    return GuardReport(playbooks.outcomes, run.code, run.id, problem, called=called)


def _changes(nodes: Iterable[GuardedNode], answers: Mapping[str, NodeAnswer]) -> dict[str, list[dict[str, Any]]]:
    """Return all changes of each host."""
    return {node.name: detach(node.writable_conf) + remove(answers[node.name].folders, node.service) for node in nodes}
