"""Install the guard on hosts, or bring it up to date."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from nodetune.api.model import HostResult
from nodetune.audit import run as audit_run
from nodetune.foundation import nodeset
from nodetune.foundation.exit_codes import END_STATE_MISSED, OK
from nodetune.foundation.stage_output import Show, Silent
from nodetune.guard.deploy import archive, node_changes, policy
from nodetune.guard.deploy.node_changes import NodeInstall
from nodetune.guard.deploy.nodes import GuardedHosts, Guarding, NodeAnswer, guarded_hosts, new_policies
from nodetune.guard.deploy.paths import HOME
from nodetune.guard.deploy.playbooks import GuardPlaybooks, GuardReport, recorded
from nodetune.guard.deploy.policy import PolicyDiff
from nodetune.guard.deploy.request import GuardDiffRequest, InstallRequest
from nodetune.hosts.target import Target


@dataclass(frozen=True)
class PreparedInstall(GuardedHosts):
    """The hosts of an install, and the new policy of each."""

    policies: Mapping[str, Mapping[str, Any]]

    @cached_property
    def differences(self) -> dict[str, PolicyDiff]:
        """The differences that the new policy makes on each host."""
        return {node.name: policy.compare(node.policy, self.policies[node.name]) for node in self.nodes}

    @property
    def differs(self) -> bool:
        """Whether a policy would change, or a host fails its gating checks now."""
        return any(self.differences.values()) or any(node.failing() for node in self.nodes)


def prepare(request: GuardDiffRequest, show: Show) -> PreparedInstall:
    """Probe hosts and make their policies. Raise SettingError or yaml_lines.FileError."""
    wide = Guarding(request.selection.profiles, request.selection.site)
    return with_policies(request, *audit_run.selected_with_facts(wide, request.connection, show))


def with_policies(request: GuardDiffRequest, targets: list[Target], results: Sequence[HostResult]) -> PreparedInstall:
    """Make the policies of hosts that were probed. Raise SettingError or yaml_lines.FileError."""
    hosts = guarded_hosts(targets, results)
    policies = new_policies(hosts.nodes, request.selection, request.policy)
    return PreparedInstall(hosts.targets, hosts.nodes, hosts.lost, policies)


def dry_run(request: InstallRequest, prepared: PreparedInstall) -> GuardReport:
    """Return what an install would change."""
    playbooks = GuardPlaybooks(prepared.targets, request.connection, None, Silent().heard)
    playbooks.change(_changes(request, prepared, playbooks.ask(prepared.nodes)))
    return GuardReport(playbooks.outcomes, max(prepared.code, playbooks.code()))


def carry_out(request: InstallRequest, prepared: PreparedInstall, show: Show) -> GuardReport:
    """Install the guard, and ask the running Slurm about it. Raise OSError."""
    nodes, connection = prepared.nodes, request.connection
    with recorded("guard install", prepared, connection, request.policy.by_name, request.runs_folder) as run:
        with show.phase("guard install", len(nodes)) as phase:
            playbooks = GuardPlaybooks(prepared.targets, connection, run, phase.heard)
            bring(request, prepared, playbooks)
            problem = _not_runnable(playbooks.ask(nodes))
            if request.reconfigure and not problem:
                problem = playbooks.reconfigure(nodes)
            answers = playbooks.ask([node for node in nodes if node.slurm])
        run.code = max(playbooks.code(), END_STATE_MISSED if problem else OK, prepared.code)
    written = request.write_slurm_conf and playbooks.code() == OK and all(node.writable_conf for node in nodes)
    return GuardReport(playbooks.outcomes, run.code, run.id, problem, answers, written)


def bring(request: InstallRequest, prepared: PreparedInstall, playbooks: GuardPlaybooks) -> None:
    """Bring program, policy and scripts to the nodes."""
    before = playbooks.ask([node for node in prepared.nodes if node.policy])
    playbooks.install(_changes(request, prepared, before), request.pythons)


def _changes(
    request: InstallRequest, prepared: PreparedInstall, answers: Mapping[str, NodeAnswer]
) -> dict[str, list[dict[str, Any]]]:
    """Return the changes of each host. The current program stays: running jobs end with it."""
    changes = {}
    for node in prepared.nodes:
        folders = answers[node.name].folders if node.name in answers else ()
        node_install = NodeInstall(
            prepared.policies[node.name],
            pythons=request.pythons,
            conf=node.writable_conf if request.write_slurm_conf else "",
            textfile=request.textfile if request.timer else node.textfile,
            old=[path for path in folders if path != archive.archive().folder][:-1],  # the newest is in use until now
        )
        changes[node.name] = node_changes.install(node_install, node.policy_text)
    return changes


def _not_runnable(answers: Mapping[str, NodeAnswer]) -> str:
    """Name the hosts that cannot run the program that Slurm would call: Slurm would drain them."""
    problems = {host: answer.entry for host, answer in answers.items() if answer.entry}
    if not problems:
        return ""
    first = next(iter(problems.values()))
    return f"{HOME}/prolog cannot be run on {nodeset.fold(problems)}: {first}; fix this before Slurm calls it"
