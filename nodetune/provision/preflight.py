"""The first stage: the state of hosts and what to install on each. Changes nothing, so it precedes the confirmation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nodetune.api.model import HostFacts
from nodetune.audit import hosts as audit_hosts
from nodetune.config.site_provision import Provision
from nodetune.hosts.target import ConnectionOptions, Target, UnreachableError
from nodetune.provision import decide, package_data, results
from nodetune.provision.decide import Decision
from nodetune.provision.facts import HostRefusedError
from nodetune.provision.lock import Lock
from nodetune.provision.record import DONE, StageResult
from nodetune.provision.resume_command import ResumeCommand
from nodetune.remediation.host_operations import ApplyOptions
from nodetune.remediation.plan import PlanSelection


@dataclass(frozen=True)
class PreflightOptions:
    """The request of the user.

    `asked`: the options that select the hosts, for the commands that reproduce a figure; `typed`: the options of this
    command; `drain`: drain hosts that are in use instead of refusing them.
    """

    targets: Sequence[Target]
    reach: ConnectionOptions
    choice: PlanSelection
    site: Provision
    lock: Lock
    options: ApplyOptions = field(default_factory=lambda: ApplyOptions(max_disruption="reboot", reboot=True, canary=0))
    asked: str = ""
    typed: ResumeCommand = field(default_factory=lambda: ResumeCommand("", ""))
    drain: bool = False


@dataclass(frozen=True)
class Preflight:
    """The result of the preflight: the decision, the outcome and the facts of each host."""

    decisions: Mapping[str, Decision]
    came: Mapping[str, StageResult]
    facts: Mapping[str, HostFacts]


def check(given: PreflightOptions) -> Preflight:
    """Decide what each host gets, or why it is left alone. Change nothing."""
    decisions: dict[str, Decision] = {}
    came: dict[str, StageResult] = {}
    found = seen(given.targets, given)
    for host, facts in sorted(found.items()):
        if isinstance(facts, UnreachableError):
            came[host] = results.unreached(facts)
            continue
        try:
            decision = decide.decide(facts, given.site, given.lock)
        except HostRefusedError as refused:
            came[host] = results.refused(refused)
            continue
        came[host] = (None if given.drain else results.users(facts)) or StageResult(DONE, described(decision))
        if came[host].ok:
            decisions[host] = decision
    return Preflight(decisions, came, {host: facts for host, facts in found.items() if isinstance(facts, HostFacts)})


def seen(targets: Sequence[Target], given: PreflightOptions) -> dict[str, HostFacts | UnreachableError]:
    """Collect the current facts of hosts."""
    names = decide.FACTS | package_data.facts() | decide.lock_facts(given.lock)
    return {target.name: facts for target, facts, _ in audit_hosts.collect(list(targets), set(names), given.reach)}


def described(decision: Decision) -> str:
    """Describe what a host gets."""
    changes = decision.changes()
    driver = f", driver {decision.driver}" if decision.driver else ""
    modules = f" ({decision.wanted.choices['modules']})" if driver else ""
    many = f"{len(changes)} packages to install" if changes else "packages are as locked"
    return f"{decision.wanted.locked_as}, {decision.wanted.gpus} GPUs{driver}{modules}: {many}"


def held(decision: Decision) -> dict[str, Any]:
    held = decision.held
    return {"system": decision.wanted.locked_as, "driver": held.driver, "packages": dict(held.packages)}
