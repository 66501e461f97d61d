"""Whole hosts as witnesses of every check: its fault is planted in one's facts, and the audit names that and nothing else.

The facts of a check's own case (`tests/data/cases`) are laid over those of a whole host, as few of them as make it fail.
`tests/data/witnesses.yml` says what that does not find: another host or case, other facts, and the checks without a witness.

    python -m tests.support.witnesses CHECK …     what was tried for a check, and why it is no witness
"""

import functools
import itertools
import json
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from nodetune import checks
from nodetune.api.model import Fact, Finding, HostFacts, HostResult
from nodetune.audit import summary
from nodetune.audit.auditor import Auditor
from nodetune.audit.selection import Selection
from nodetune.config import overlay
from nodetune.facts import document
from nodetune.foundation import paths, yaml_lines
from tests.support import planted_files

DATA = Path(__file__).parents[1] / "data"
SYNTHETIC = ("hgx-h200-tuned", "pcie-8xl40s", "grace-gb200", "workstation-4x4090", "hgx-h200-untuned")
RECORDED = ("h200-x4", "h100-x2")
TODAY = "2026-11-01"
COUNTED = summary.at_least("medium")
DEVICES = ("gpu", "pci", "net", "rdma", "irq", "block")
"""Families whose facts are about devices: those of a case are replaced by devices that the host has."""
JUDGED = ("pass", "fail")
SHOWN = 3

Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Witness:
    """A host, and what was planted in its facts so that a check has this status; nothing where the host has it as it is."""

    host: str
    plant: Facts = field(default_factory=dict)
    site: Any = None
    problems: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    """Where the probe reads what was planted, for facts that the collectors brought."""

    def __str__(self) -> str:
        return self.host + "".join(f" {name}" for name in self.plant)


@functools.cache
def told() -> dict[str, Any]:
    """Return what witnesses.yml says: `hosts`, `fail` and `pass` of checks, `exceptions`."""
    return _read(DATA / "witnesses.yml")


@functools.cache
def cases(check: str) -> dict[str, Any]:
    """Return the content of the file of cases of a check."""
    return _read(DATA / "cases" / f"{check.replace('-', '_')}.yml")


def _read(path: Path) -> Any:
    return yaml.load(path.read_text("utf-8"), yaml.CSafeLoader)


@functools.cache
def hosts() -> dict[str, Facts]:
    """Return name → facts as data: the whole hosts, in the order in which a witness is looked for."""
    found = {name: origin(name) for name in (SYNTHETIC[0], *RECORDED, *SYNTHETIC[1:])}
    for name, about in told()["hosts"].items():
        found[name] = {**origin(about["from"]), **planted(origin(about["from"]), about)}
    return found


@functools.cache
def origin(name: str) -> Facts:
    """Return the facts of a host that was recorded or built."""
    recorded = paths.bundled("facts/recorded") if name in RECORDED else None
    folder = recorded or DATA / ("synthetic" if name in SYNTHETIC else "corpus")
    facts: Facts = document.parse((folder / f"{name}.json").read_bytes(), name)["facts"]
    return facts


def judged(facts: Facts, site: str = "") -> dict[str, Finding]:
    """Return check → its finding on a host with these facts, with the text of a site file."""
    return _judged(document.from_data({"host": "host", "facts": facts}).facts, site)


def _judged(facts: Mapping[str, Fact], site: str) -> dict[str, Finding]:
    result = _auditor(site).audit(HostResult("host", "ok", facts=HostFacts("host", facts)))
    return {each.check: each for each in result.findings}


@functools.cache
def _whole(host: str) -> Mapping[str, Fact]:
    return document.from_data({"host": host, "facts": hosts()[host]}).facts


def audit(host: str, plant: Facts, check: str = "", site: Any = None) -> dict[str, Finding]:
    """Return check → its finding on a host with other facts; `site`: what a site file says of the check."""
    facts = {**_whole(host), **document.from_data({"host": host, "facts": plant}).facts}
    return _judged(facts, "" if site is None else json.dumps({"checks": {check: site}}))


@functools.cache
def _auditor(site: str) -> Auditor:
    """Return what audits with the text of a site file; empty: with none."""
    own = overlay.parse(yaml_lines.parse(site, "site.yml"), "site") if site else None
    return Auditor(Selection(site=own), TODAY)


@functools.cache
def untouched(host: str) -> dict[str, Finding]:
    return audit(host, {})


def problems(check: str, status: str, host: str, plant: Facts, site: Any, silences: Collection[str] = ()) -> list[str]:
    """Return why a host with this plant is no witness of the check with this status; it may silence checks of these patterns."""
    now, before = audit(host, plant, check, site), untouched(host)
    mine = now.get(check)
    if mine is None or mine.status != status:
        return [f"{check} is {_said(now, check)}"]
    cause = {check, mine.part_of} - {""}
    shape = [f"{name} has a wrong shape" for name in plant if _is_refused(name, plant[name])]
    more = [
        f"{each.check} also fails: {each.observed}"
        for each in now.values()
        if each.status == "fail"
        and each.severity in COUNTED
        and not {each.check, each.part_of} & cause
        and before[each.check].status != "fail"
    ]
    less = [
        f"{name} is {_said(now, name)} instead of {found.status}"
        for name, found in before.items()
        if name != check
        and found.status in JUDGED
        and _status(now, name) not in JUDGED
        and not any(fnmatchcase(name, each) for each in silences)
    ]
    return shape + more + less


def _is_refused(name: str, fact: Any) -> bool:
    """Return whether a value is none that the probe could bring."""
    read = document.from_data({"host": "", "facts": {name: fact}}).facts[name]
    return "unread" not in fact and type(read).__name__ == "Unread"


@functools.cache
def witness(check: str, status: str) -> Witness | None:
    """Return the witness of a check with a status: the one that witnesses.yml describes, else the first that is found."""
    told_of = described(check, status)
    tried = told_of[0] if told_of else next(filter(_is_one, attempts(check, status)), None)
    if tried and tried.host in SYNTHETIC and tried.plant and all(name.startswith("sysctl.") for name in tried.plant):
        files = {f"/proc/sys/{name[7:].replace('.', '/')}": _line(fact["value"]) for name, fact in tried.plant.items()}
        tried = _planted(check, {"host": tried.host, "files": files, "site": tried.site})
    return tried if tried and not tried.problems else None


def _line(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def described(check: str, status: str) -> list[Witness]:
    """Return the witness that witnesses.yml describes, if any."""
    if status == "fail" and check in told()["planted"]:
        return [_planted(check, told()["planted"][check])]
    said = told()[status].get(check)
    return [_described(check, status, said)] if said else []


def host_of(said: Mapping[str, Any]) -> str:
    """Return the machine in whose files a fault is planted."""
    return str(said.get("host", SYNTHETIC[0]))


def _planted(check: str, said: Mapping[str, Any]) -> Witness:
    """Return the witness with a fault in what the probe reads of a synthetic machine."""
    host = host_of(said)
    plant = planted_files.facts(host, said)
    found = problems(check, "fail", host, plant, said.get("site"), said.get("silences", ()))
    return Witness(host, plant, said.get("site"), tuple(found), planted_files.places(said))


def _is_one(tried: Witness) -> bool:
    return not tried.problems


def _described(check: str, status: str, said: Mapping[str, Any]) -> Witness:
    facts, site = {}, said.get("site")
    if "case" in said:
        facts, site = _cases(check, status)[said["case"]]
    names = said.get("as", {})
    facts = {name: _renamed(fact, names) for name, fact in facts.items()} | said.get("facts", {})
    lacks = said.get("without", {})
    plant = planted(hosts()[said["host"]], {"facts": facts, "without": lacks})
    site = said.get("site", site)
    plant = _least(check, status, said["host"], plant, site, {*said.get("facts", {}), *lacks})
    return Witness(
        said["host"], plant, site, tuple(problems(check, status, said["host"], plant, site, said.get("silences", ())))
    )


def attempts(check: str, status: str) -> Iterator[Witness]:
    """Yield every host as it is, and with each case of the check planted in its facts."""
    if status == "pass":
        sites = [None, *(site for kind in JUDGED for _, site in _cases(check, kind))]
        every = (Witness(host, {}, _site(check, host, site)) for site in sites for host in hosts())
        yield from (each for each in every if _status(audit(each.host, {}, check, each.site), check) == status)
    for host, (facts, site) in itertools.product(hosts(), _cases(check, status)):
        mine = _site(check, host, site)
        for names in [{}, *filter(None, [_devices(hosts()[host], facts)])]:
            plant = {name: _renamed(fact, names) for name, fact in facts.items()}
            lacking = _unknown_devices(hosts()[host], plant)
            least = _least(check, status, host, planted(hosts()[host], {"facts": plant}), mine)
            found = problems(check, status, host, least, mine)
            found += [f"the host has no {each}" for name, each in lacking if name in least]
            yield Witness(host, least, mine, tuple(found))


def _status(findings: Mapping[str, Finding], check: str) -> str:
    return findings[check].status if check in findings else "off"


def _said(findings: Mapping[str, Finding], check: str) -> str:
    found = findings.get(check)
    return f"{found.status} ({found.reason or found.observed})" if found else "off"


def _cases(check: str, status: str) -> list[tuple[Facts, Any]]:
    """Return the facts of each case with a status, and what a site file says there."""
    content = cases(check)
    group = content.get(status) or []
    every = [{**content.get("given", {}), **case} for case in (group if isinstance(group, list) else [group])]
    return [({name: fact for name, fact in one.items() if "." in name}, one.get("site")) for one in every]


def _site(check: str, host: str, site: Any) -> Any:
    """Return what a site file says of the check: what the case says, else "on" for one that is off by default."""
    mine = untouched(host).get(check)
    return True if site is None and (mine is None or "untouched" in mine.reason) else site


def _least(check: str, status: str, host: str, plant: Facts, site: Any, kept: Collection[str] = ()) -> Facts:
    """Return as few of the facts as the status needs, and those that are to be kept."""
    if _status(audit(host, plant, check, site), check) != status:
        return plant
    for name in [each for each in plant if each not in kept]:
        fewer = {each: fact for each, fact in plant.items() if each != name}
        if _status(audit(host, fewer, check, site), check) == status:
            plant = fewer
    return plant


def planted(facts: Facts, plant: Mapping[str, Any]) -> Facts:
    """Return the facts of a plant, laid over those of a host; `without`: fact → devices that it loses."""
    found = {name: _laid(facts.get(name, {}), fact) for name, fact in plant.get("facts", {}).items()}
    for name, gone in plant.get("without", {}).items():
        kind, of = next(iter(found.get(name, facts[name]).items()))
        found[name] = {kind: {each: one for each, one in of.items() if each not in gone}}
    return found


def _laid(old: Any, new: Any) -> Any:
    """Return a fact with what is new in it: values of devices one by one, and members of objects."""
    if "each" in old and "each" in new:
        new = {"each": dict.fromkeys(old["each"], new["each"]["*"]) if "*" in new["each"] else new["each"]}
        return {
            "each": old["each"] | {each: _laid(old["each"].get(each, {}), one) for each, one in new["each"].items()}
        }
    if isinstance(old.get("value"), dict) and isinstance(new.get("value"), dict):
        return {"value": _merged(old["value"], new["value"])}
    return new


def _merged(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return old | {name: _merged(old.get(name), one) for name, one in new.items()}
    return new


def _unknown_devices(facts: Facts, plant: Facts) -> list[tuple[str, str]]:
    """Return (fact, device) of each device that the host lacks, in facts that it has."""
    pairs = [(name, _named(plant[name]), _named(facts.get(name, {}))) for name in plant if _is_of_devices(name)]
    return [(name, each) for name, mine, known in pairs if known for each in mine if each not in known]


def _is_of_devices(name: str) -> bool:
    return name.partition(".")[0] in DEVICES


def _named(fact: Any) -> list[str]:
    of = fact.get("each", fact.get("value"))
    return list(of) if isinstance(of, dict) else []


def _devices(facts: Facts, plant: Facts) -> dict[str, str]:
    """Return each device of a case that the host lacks → one of its own of that kind."""
    names: dict[str, str] = {}
    for fact, each in _unknown_devices(facts, plant):
        mine = [
            one for one in sorted(_named(facts[fact])) if one not in names.values() and one not in _named(plant[fact])
        ]
        alike = [one for one in mine if _kind(facts, one) == _kind(plant, each)]
        if each not in names and (alike or mine):
            names[each] = (alike or mine)[0]
    return names


def _kind(facts: Facts, device: str) -> object:
    """Return what a device is: a GPU, another PCI function of its class, a physical link …"""
    if device in (facts.get("pci.gpus", {}).get("value") or ()):
        return "GPU"
    of = {**facts.get("pci.devices", {}).get("value", {}), **facts.get("net.links", {}).get("value", {})}.get(
        device, {}
    )
    return of.get("class", "")[:2], of.get("physical"), of.get("up")


def _renamed(data: Any, names: Mapping[str, str]) -> Any:
    if isinstance(data, dict):
        return {names.get(name, name): _renamed(each, names) for name, each in data.items()}
    if isinstance(data, list):
        return [_renamed(each, names) for each in data]
    return names.get(data, data) if isinstance(data, str) else data


def main() -> None:
    for check, status in itertools.product(sys.argv[1:] or list(checks.catalogue()), JUDGED):
        if witness(check, status) is None:
            print(f"{check}, {status}:")
            every = described(check, status) or attempts(check, status)
            for tried in sorted(every, key=lambda each: len(each.problems))[:SHOWN]:
                print(f"  {tried} ({len(tried.problems)}): {'; '.join(tried.problems[:6])}")
        elif len(sys.argv) > 1:
            print(f"{check}, {status}: {witness(check, status)}")


if __name__ == "__main__":
    main()
