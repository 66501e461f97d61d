"""The first stage: hosts as they are, and what each is to get. Changes nothing, so it comes before anybody is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nodetune import workflow
from nodetune.choice import Planning
from nodetune.field import How
from nodetune.model import HostFacts
from nodetune.provision import catalogue, decide, judge
from nodetune.provision.decide import Decision
from nodetune.provision.lock import Lock
from nodetune.provision.record import DONE, Came
from nodetune.provision.seen import Refused
from nodetune.provision.typed import Typed
from nodetune.siteprovision import Provision
from nodetune.transport import Target, Unreachable
from nodetune.workflow import Reach


@dataclass(frozen=True)
class Given:
    """What a person asked for. `asked`: the options that say which hosts, for the commands that reproduce a figure; `typed`:
    those of this command; `drain`: hosts in use are drained, and not refused.
    """

    targets: Sequence[Target]
    reach: Reach
    choice: Planning
    site: Provision
    lock: Lock
    how: How = field(default_factory=lambda: How(max_disruption="reboot", reboot=True, canary=0))
    asked: str = ""
    typed: Typed = field(default_factory=lambda: Typed("", ""))
    drain: bool = False


@dataclass(frozen=True)
class Looked:
    """What was found on hosts: what each gets, what its look came to, and the facts behind it."""

    decisions: Mapping[str, Decision]
    came: Mapping[str, Came]
    facts: Mapping[str, HostFacts]


def look(given: Given) -> Looked:
    """Facts; what each host gets; why one is left alone. Changes nothing."""
    decisions: dict[str, Decision] = {}
    came: dict[str, Came] = {}
    found = seen(given.targets, given)
    for host, facts in sorted(found.items()):
        if isinstance(facts, Unreachable):
            came[host] = judge.unreached(facts)
            continue
        try:
            decision = decide.decide(facts, given.site, given.lock)
        except Refused as refused:
            came[host] = judge.refused(refused)
            continue
        came[host] = (None if given.drain else judge.users(facts)) or Came(DONE, described(decision))
        if came[host].ok:
            decisions[host] = decision
    return Looked(decisions, came, {host: facts for host, facts in found.items() if isinstance(facts, HostFacts)})


def seen(targets: Sequence[Target], given: Given) -> dict[str, HostFacts | Unreachable]:
    """The facts of hosts as they are now."""
    names = decide.FACTS | catalogue.facts() | decide.lock_facts(given.lock)
    return {target.name: facts for target, facts, _ in workflow.collect(list(targets), set(names), given.reach)}


def described(decision: Decision) -> str:
    """What a host gets, for a person."""
    changes = decision.changes()
    driver = f", driver {decision.driver}" if decision.driver else ""
    modules = f" ({decision.wanted.choices['modules']})" if driver else ""
    many = f"{len(changes)} packages to install" if changes else "packages are as locked"
    return f"{decision.wanted.locked_as}, {decision.wanted.gpus} GPUs{driver}{modules}: {many}"


def held(decision: Decision) -> dict[str, Any]:
    held = decision.held
    return {"system": decision.wanted.locked_as, "driver": held.driver, "packages": dict(held.packages)}
