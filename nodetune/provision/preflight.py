"""The first stage: the state of hosts and what to install on each. Changes nothing, so it precedes the confirmation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nodetune.api.model import HostFacts
from nodetune.audit import hosts as audit_hosts
from nodetune.config.overlay import Overlay
from nodetune.config.site_provision import Provision
from nodetune.foundation import nodeset, text
from nodetune.foundation.stage_output import Show
from nodetune.foundation.yaml_lines import FileError
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.hosts.target import Target, UnreachableError
from nodetune.provision import baseline, decide, package_data, results
from nodetune.provision import lock as locks
from nodetune.provision.decide import VersionDecision
from nodetune.provision.facts import HostRefusedError
from nodetune.provision.lock import Lock
from nodetune.provision.record import DONE, StageResult
from nodetune.provision.request import ProvisionRequest
from nodetune.remediation.ansible.inventory import as_probed
from nodetune.remediation.plan import PlanSelection
from nodetune.remote.selected_hosts import selected_hosts
from nodetune.verify.compare import MIN_RUNS


@dataclass(frozen=True)
class Preflight:
    """The result of the preflight: the decision, the outcome and the facts of each host."""

    request: ProvisionRequest
    site: Provision
    targets: Sequence[Target]
    lock: Lock
    decisions: Mapping[str, VersionDecision]
    came: Mapping[str, StageResult]
    facts: Mapping[str, HostFacts]

    @property
    def summary(self) -> str:
        """The work and its hosts, in one line."""
        request, hosts = self.request, text.plain(nodeset.fold(self.decisions), 60)
        moved = len({name for each in self.decisions.values() for name, _, _ in each.changes()})
        parts = [text.count(moved, "package")] if request.runs("packages") else []
        if request.runs("reboot"):
            parts.append("a reboot if the driver needs it")
        if request.upgrade:
            parts.append(f"measured {MIN_RUNS} times before and after")
        else:
            done = {"tune": True, "guard": bool(self.site.guard), "join": self.site.join != "none"}
            parts += [stage for stage, wanted in done.items() if wanted and request.runs(stage)]
        what = "Upgrade" if request.upgrade else "Provision"
        return f"{what} {text.count(len(self.decisions), 'host')} ({hosts}): {', '.join(parts)}"


def prepare(request: ProvisionRequest, show: Show) -> Preflight:
    """Decide what each host gets. Raise FileError, InventoryError."""
    site, lock = site_of(request.selection.site, request.selection.files), locks.read(request.lock)
    targets = selected_hosts(request.connection, show.detail)
    if not request.upgrade:
        baseline.check(site.baseline)
    return check(replace(request, selection=PlanSelection.of(request.selection)), site, targets, lock)


def site_of(site: Overlay | None, files: Sequence[Path]) -> Provision:
    """Return what site files say about provisioning. Raise FileError if they say nothing."""
    if site is None or site.provision is None:
        raise FileError(
            f"{', '.join(map(str, files))}: the key provision is missing: it sets the repositories and parts of hosts "
            "(docs/provision.md)"
        )
    return site.provision


def check(request: ProvisionRequest, site: Provision, targets: Sequence[Target], lock: Lock) -> Preflight:
    """Decide what each host gets, or why it is left alone. Change nothing."""
    decisions: dict[str, VersionDecision] = {}
    came: dict[str, StageResult] = {}
    found = seen(targets, request.connection, lock)
    for host, facts in sorted(found.items()):
        if isinstance(facts, UnreachableError):
            came[host] = results.unreached(facts)
            continue
        try:
            decision = decide.decide(facts, site, lock)
        except HostRefusedError as refused:
            came[host] = results.refused(refused)
            continue
        why = None if request.drain else results.users(facts)
        why = why or (results.not_upgradable(decision, facts) if request.upgrade else None)
        came[host] = why or StageResult(DONE, described(decision))
        if came[host].ok:
            decisions[host] = decision
    known = {host: facts for host, facts in found.items() if isinstance(facts, HostFacts)}
    probed = [as_probed(target, known.get(target.name)) for target in targets]
    return Preflight(request, site, probed, lock, decisions, came, known)


def seen(
    targets: Sequence[Target], connection: ConnectionOptions, lock: Lock
) -> dict[str, HostFacts | UnreachableError]:
    """Collect the current facts of hosts."""
    names = decide.FACTS | package_data.facts() | decide.lock_facts(lock)
    return {target.name: facts for target, facts, _ in audit_hosts.collect(list(targets), set(names), connection)}


def described(decision: VersionDecision) -> str:
    """Describe what a host gets."""
    changes = decision.changes()
    driver = f", driver {decision.driver}" if decision.driver else ""
    modules = f" ({decision.wanted.choices['modules']})" if driver else ""
    many = f"{text.count(len(changes), 'package')} to install" if changes else "packages are as locked"
    return f"{decision.wanted.locked_as}, {text.count(decision.wanted.gpus, 'GPU')}{driver}{modules}: {many}"


def held(decision: VersionDecision) -> dict[str, Any]:
    held = decision.held
    return {"system": decision.wanted.locked_as, "driver": held.driver, "packages": dict(held.packages)}
