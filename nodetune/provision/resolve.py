"""Which versions would hosts get? Asked of the hosts' own package managers, with the site's repositories; nothing changes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from nodetune.api.model import HostFacts
from nodetune.audit import hosts as audit_hosts
from nodetune.config.site_provision import Provision
from nodetune.foundation import text
from nodetune.foundation.exit_codes import END_STATE_MISSED, INCOMPLETE, OK
from nodetune.foundation.yaml_lines import FileError
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.hosts.target import Target, UnreachableError
from nodetune.provision import decide, package_data
from nodetune.provision.decide import Wanted
from nodetune.provision.facts import HostRefusedError
from nodetune.provision.lock import Versions, check
from nodetune.remediation.ansible import play
from nodetune.remediation.ansible.events import Outcome
from nodetune.remediation.ansible.play import OnEvent, PlayOptions

SECONDS = 900.0
"""For as many hosts as run at a time; fetching the lists of large repositories takes a minute or two."""

MAX_LENGTH = 200
"""Signs of a package's name or version."""


@dataclass(frozen=True)
class Resolution:
    """The answer of one host. `problem`: why it has no answer, with the exit code."""

    host: str
    system: str = ""
    versions: Versions = field(default_factory=Versions)
    problem: str = ""
    code: int = OK


def ask(
    targets: Sequence[Target], connection: ConnectionOptions, site: Provision, on_event: OnEvent, driver: str = ""
) -> list[Resolution]:
    """Ask every host, in the order of their names. `driver`: a version instead of the newest of the site's branch."""
    asked: dict[str, Wanted] = {}
    answers: list[Resolution] = []
    for target, facts, _ in audit_hosts.collect(list(targets), set(decide.FACTS | package_data.facts()), connection):
        found = _wanted(target, facts, site)
        if isinstance(found, Wanted):
            asked[target.name] = found
        else:
            answers.append(found)
    going = [target for target in targets if target.name in asked]
    exact = {"nodetune_branch": driver} if driver else {}
    variables = {host: {**each.variables(), **exact} for host, each in asked.items()}
    options = PlayOptions(connection.options, connection.forks, SECONDS)
    outcomes = play.play("versions", going, variables, options, on_event=on_event)
    answers += [_answer(asked[host], outcome) for host, outcome in outcomes.items()]
    return sorted(answers, key=lambda each: each.host)


def _wanted(target: Target, facts: HostFacts | UnreachableError, site: Provision) -> Wanted | Resolution:
    if isinstance(facts, UnreachableError):
        return Resolution(target.name, problem=f"{facts.state}: {facts.message}", code=INCOMPLETE)
    try:
        return decide.wanted(facts, site)
    except HostRefusedError as refused:
        return Resolution(target.name, problem=str(refused), code=INCOMPLETE if refused.unknown else END_STATE_MISSED)


def _answer(asked: Wanted, outcome: Outcome) -> Resolution:
    nothing = Resolution(asked.host, asked.locked_as, code=END_STATE_MISSED)
    if outcome.state != "ok":
        code = INCOMPLETE if outcome.state == "unreachable" else END_STATE_MISSED
        return replace(nothing, problem=text.plain(outcome.message), code=code)
    told: Mapping[str, Any] = next((each.result for each in outcome.results if "versions" in each.result), {})
    given = told.get("versions")
    if not isinstance(given, dict) or not given:
        return replace(nothing, problem="the host returned no versions")
    driver = told.get("driver") or "" if "driver" in asked.parts else ""
    words = [driver, *given, *given.values()]
    if not all(isinstance(word, str) and len(word) <= MAX_LENGTH for word in words):
        return replace(nothing, problem="the host returned invalid versions")
    found = Versions(driver, given)
    try:
        check(found, asked.locked_as)
    except FileError as problem:
        return replace(nothing, problem=text.plain(problem))
    return Resolution(asked.host, asked.locked_as, found)


@dataclass(frozen=True)
class Gathered:
    """The versions by system; the systems whose hosts disagree, with who said what; packages that not all hosts need."""

    found: Mapping[str, Versions]
    disagreeing: Sequence[str]
    notes: Sequence[str]


def gathered(answers: Sequence[Resolution]) -> Gathered:
    """Compare the hosts of each system. Where two name different versions, none is believed: one of them is wrong.

    Hosts of one system may need different packages (an NVSwitch, say). Each that not all of them need is named.
    """
    systems: dict[str, list[Resolution]] = {}
    for each in answers:
        if not each.problem:
            systems.setdefault(each.system, []).append(each)
    found: dict[str, Versions] = {}
    disagreeing, notes = [], []
    for system, hosts in systems.items():
        apart = _apart(hosts)
        if apart:
            disagreeing.append(f"{system}: {apart}: lock hosts with the same repositories")
            continue
        packages = {name: version for each in hosts for name, version in each.versions.packages.items()}
        found[system] = Versions(hosts[0].versions.driver, packages)
        notes += [f"{system}: {note}" for note in _not_everywhere(packages, hosts)]
    return Gathered(found, disagreeing, notes)


def _apart(hosts: Sequence[Resolution]) -> str:
    """Describe the first difference between hosts of one system: who reports what, the fewest first."""
    for name in ("driver", *sorted({name for each in hosts for name in each.versions.packages})):
        said: dict[str, list[str]] = {}
        for each in hosts:
            version = each.versions.driver if name == "driver" else each.versions.packages.get(name)
            if version is not None:
                said.setdefault(version, []).append(each.host)
        if len(said) > 1:
            fewest = sorted(said.items(), key=lambda item: len(item[1]))
            told = (f"{version or 'none'} on {text.names(names)}" for version, names in fewest)
            return f"{name} would be {' and '.join(told)}"
    return ""


def _not_everywhere(packages: Iterable[str], hosts: Sequence[Resolution]) -> Iterator[str]:
    for package in sorted(packages):
        needing = [each.host for each in hosts if package in each.versions.packages]
        if len(needing) < len(hosts):
            yield f"{package} is only for {text.names(needing)}"
