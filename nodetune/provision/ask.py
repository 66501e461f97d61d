"""Which versions would hosts get? Asked of the hosts' own package managers, with the site's repositories; nothing changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nodetune import playbook, workflow
from nodetune.model import HostFacts
from nodetune.outcome import INCOMPLETE, NOT_REACHED, OK
from nodetune.playbook import Event, Outcome, Way
from nodetune.provision import catalogue, decide
from nodetune.provision.decide import Wanted
from nodetune.provision.lock import Versions, check
from nodetune.provision.seen import Refused
from nodetune.siteprovision import Provision
from nodetune.transport import Target, Unreachable
from nodetune.workflow import Reach

SECONDS = 900.0
"""All hosts at once; fetching the lists of large repositories takes a minute or two."""

NAME, VERSION = re.compile(r"[\w.+-]{1,200}"), re.compile(r"[\w.+~:^-]{1,200}")


@dataclass(frozen=True)
class Answer:
    """What one host says. `problem`: why it says nothing, with the exit code that this stands for."""

    host: str
    system: str = ""
    versions: Versions = field(default_factory=Versions)
    problem: str = ""
    code: int = OK


def ask(
    targets: Sequence[Target], reach: Reach, site: Provision, tell: Callable[[Event], None], driver: str = ""
) -> list[Answer]:
    """Ask every host, in the order of their names. `driver`: a version instead of the newest of the site's branch."""
    asked: dict[str, Wanted] = {}
    answers: list[Answer] = []
    for target, facts, _ in workflow.collect(list(targets), set(decide.FACTS | catalogue.facts()), reach):
        found = _wanted(target, facts, site)
        if isinstance(found, Wanted):
            asked[target.name] = found
        else:
            answers.append(found)
    going = [target for target in targets if target.name in asked]
    exact = {"nodetune_branch": driver} if driver else {}
    variables = {host: {**each.variables(), **exact} for host, each in asked.items()}
    way = Way(reach.options, min(reach.forks, playbook.FORKS), SECONDS)
    outcomes = playbook.play("versions", going, variables, way, tell) if going else {}
    answers += [_answer(asked[host], outcome) for host, outcome in outcomes.items()]
    return sorted(answers, key=lambda each: each.host)


def _wanted(target: Target, facts: HostFacts | Unreachable, site: Provision) -> Wanted | Answer:
    if isinstance(facts, Unreachable):
        return Answer(target.name, problem=f"{facts.state}: {facts.message}", code=INCOMPLETE)
    try:
        return decide.wanted(facts, site)
    except Refused as refused:
        return Answer(target.name, problem=str(refused), code=INCOMPLETE if refused.unknown else NOT_REACHED)


def _answer(asked: Wanted, outcome: Outcome) -> Answer:
    if outcome.state != "ok":
        code = INCOMPLETE if outcome.state == "unreachable" else NOT_REACHED
        return Answer(asked.host, asked.locked_as, problem=outcome.message, code=code)
    told: Mapping[str, Any] = next((each.result for each in outcome.results if "versions" in each.result), {})
    given = told.get("versions")
    packages = given if isinstance(given, dict) else {}
    if not packages or not all(_sane(name, version) for name, version in packages.items()):
        return Answer(asked.host, asked.locked_as, problem="the host named no versions", code=NOT_REACHED)
    driver = str(told.get("driver") or "") if "driver" in asked.parts else ""
    return Answer(asked.host, asked.locked_as, Versions(driver, packages))


def _sane(name: Any, version: Any) -> bool:
    return bool(isinstance(version, str) and NAME.fullmatch(str(name)) and VERSION.fullmatch(version))


def gathered(answers: Sequence[Answer]) -> tuple[dict[str, Versions], list[Answer]]:
    """The versions by system, and the hosts whose answer cannot stand beside the others'. Raises located.BadFile.

    Hosts of one system may need different packages (an NVSwitch, say), and must not need one in two versions.
    """
    found: dict[str, Versions] = {}
    odd = []
    for each in answers:
        if each.problem:
            continue
        known = found.get(each.system, each.versions)
        apart = _apart(known, each.versions)
        if apart:
            odd.append(replace(each, problem=f"{apart}: lock hosts that see the same repositories", code=NOT_REACHED))
            continue
        found[each.system] = Versions(known.driver, {**known.packages, **each.versions.packages})
        check(found[each.system], each.system)
    return found, odd


def _apart(known: Versions, other: Versions) -> str:
    """The first thing that two hosts of one system say differently."""
    pairs = [("driver", known.driver, other.driver)]
    pairs += [(name, known.packages.get(name, version), version) for name, version in other.packages.items()]
    return next((f"{name} would be {b} here, and {a} on another host" for name, a, b in pairs if a != b), "")
