"""Find faults of site files beyond their form: contradictory values, expired waivers, hosts that do not exist."""

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from nodetune.api import predicates
from nodetune.api.model import Check
from nodetune.config import profile, site, site_checks, site_file, waivers
from nodetune.config.overlay import Overlay, Rank
from nodetune.foundation import nodeset, text, yaml_lines
from nodetune.foundation.yaml_lines import FileError, LocatedYaml

NUMBERS = ("sysctl", "limit", "lustre_param", "nfs_option", "nfs_read_ahead", "block_queue", "cpufreq")
"""Remedies that write a number in the form in which its check reads it."""

Ranks = Mapping[str, tuple[Rank, ...] | None]
"""The hosts of an inventory and the groups of each."""


@dataclass(frozen=True)
class Problem:
    """A problem with its place. An error makes the file unusable or a part of it useless; a warning does not."""

    file: str
    line: int
    text: str
    is_error: bool = True


@dataclass(frozen=True)
class Read:
    """A site file with the errors in its form."""

    overlay: Overlay
    yaml: LocatedYaml

    def problem(self, message: str, *path: object, is_error: bool = True) -> Problem:
        return Problem(self.yaml.file, self.yaml.line(*path), str(self.yaml.error(message, *path)), is_error)


def problems(paths: Sequence[Path], today: str, ranks: Ranks | None = None) -> tuple[list[Problem], Overlay | None]:
    """Return all problems of site files with their lines, and the combined site file.

    With the hosts of an inventory, also report entries that match none of them.
    """
    found: list[Problem] = []
    files: list[Read] = []
    for path in paths:
        broken = LocatedYaml(str(path), None)
        with broken.collecting():
            added = [check.id for each in files for check in each.overlay.add]
            files.append(Read(*site_file.gather(path, more=added)))
        found += [Problem(str(path), problem.line, str(problem)) for problem in broken.problems]
    for each in files:
        found += [Problem(each.yaml.file, problem.line, str(problem)) for problem in each.yaml.problems]
        found += [*_conditions(each), *_ended(each, today), *(_unknown(each, ranks) if ranks is not None else ())]
    whole = site.stack([replace(each.overlay, when=()) for each in files]) if files else None
    if whole:
        found += unreachable(whole)
        found += _ambiguous(whole, ranks or {})
    order = {str(path): number for number, path in enumerate(paths)}
    return sorted(found, key=lambda each: (order.get(each.file, 0), each.line)), whole


def _conditions(read: Read) -> Iterator[Problem]:
    if read.overlay.when:
        yield read.problem(
            "when has no effect in a site file: remove it (for values of some hosts, use groups or hosts)", "when"
        )


def _ended(read: Read, today: str) -> Iterator[Problem]:
    for number, each in enumerate((read.yaml.data or {}).get("waivers") or ()):
        until = each and each["until"]
        if isinstance(until, datetime.date) and until.isoformat() < today:
            told = f"the waiver for {each['id']} ended on {until}: its findings count again; renew or remove it"
            yield read.problem(told, "waivers", number, "until", is_error=False)


def _unknown(read: Read, ranks: Ranks) -> Iterator[Problem]:
    """Yield entries with hosts or groups that the inventory does not have."""
    data = read.yaml.data or {}
    groups = {name for its in ranks.values() for name, _, _ in its or ()}
    named: list[tuple[str, tuple[object, ...]]] = [(str(name), ("groups", name)) for name in data.get("groups") or ()]
    hosts: list[tuple[str, tuple[object, ...]]] = [(str(name), ("hosts", name)) for name in data.get("hosts") or ()]
    for number, each in enumerate(data.get("waivers") or ()):
        given = (each or {}).get("groups", [])
        named += [(name, ("waivers", number, "groups")) for name in ([given] if isinstance(given, str) else given)]
        hosts += [(each["hosts"], ("waivers", number, "hosts"))] if each and "hosts" in each else []
    for name, at in named:
        if groups and name not in groups:
            yield read.problem(yaml_lines.unknown(name, groups, "inventory group"), *at)
    for pattern, at in hosts:
        yield from _not_there(read, pattern, ranks, at)


def _not_there(read: Read, pattern: str, ranks: Ranks, at: Sequence[object]) -> Iterator[Problem]:
    with suppress(ValueError):  # which is a problem already
        names, shell = waivers.read(pattern)
        missing = sorted(names - set(ranks))
        useless = [part for part in shell if not any(fnmatchcase(each, part) for each in ranks)]
        if missing or useless:
            told = ", ".join([*([nodeset.fold(missing)] if missing else []), *useless])
            some = any(waivers.covers(pattern, host) for host in ranks)
            yield read.problem(f"the inventory has no {told}", *at, is_error=not some)


def unreachable(whole: Overlay) -> Iterator[Problem]:
    """Yield values of `set` that the same check does not accept: a fix would never pass its audit."""
    names = profile.named([name for name in whole.profile or ("training",) if name in profile.shipped()])
    for layer in (*whole.layers(), *whole.sections):
        resolved = {check.id: check for check in profile.resolve(names, site.for_section(whole, layer)).checks}
        changed = {check_id: set(change) for check_id, change in layer.checks.items() if isinstance(change, dict)}
        said = {check_id for check_id, keys in changed.items() if {"accept", "set"} & keys}
        for check_id in said | {check.id for check in layer.add}:
            told = contradiction(resolved[check_id]) if check_id in resolved else ""
            if told:
                line = layer.lines.get(check_id, 1)
                yield Problem(layer.file, line, f"{layer.file} line {line}: {check_id}: {told}")


def contradiction(check: Check) -> str:
    """Return why a fix of this check would never pass its audit; empty if it may pass or if it depends on facts."""
    if check.remedy.kind == "service" and check.remedy.per_subject and check.set not in (None, "disabled", "masked"):
        return f"a fix sets these to disabled or masked, not to {text.setting(check.set, check.unit)}"
    if check.remedy.kind == "service" and check.accept in site_checks.SERVICE_STATES.values():
        state = next(name for name, accept in site_checks.SERVICE_STATES.items() if accept == check.accept)
        return _told(check.set, state) if check.set not in (None, state) else ""
    refers = predicates.refs(check.accept) or predicates.refs(check.set)
    nccl = check.remedy.kind == "nccl_conf" and check.area == "site"
    if not (check.fact or nccl or _same_value(check)) or check.set is None or check.accept is None or refers:
        return ""
    accept = predicates.as_predicate(check.accept)
    value = str(check.set) if check.remedy.kind == "kernel_arg" else check.set
    value = site_checks.as_numbers(value) if nccl else value
    if accept.test(value):
        return ""
    return _told(text.setting(check.set, check.unit), accept.describe(lambda each: text.value(each, check.unit)))


def _same_value(check: Check) -> bool:
    """Return whether the check observes the number or word that a fix writes, although it computes the value."""
    number = isinstance(check.set, (int, float)) and not isinstance(check.set, bool)
    if check.remedy.kind == "sysfs" and isinstance(check.set, str):
        return isinstance(predicates.as_predicate(check.accept), (predicates.OneOf, predicates.Equals))
    return check.remedy.kind in NUMBERS and number and predicates.wants_number(check.accept)


def _told(value: object, wanted: str) -> str:
    shown = text.plain(value), text.plain(wanted)
    return f"a fix would set {shown[0]}, which accept rejects ({shown[1]}): make accept and set agree"


def _ambiguous(whole: Overlay, ranks: Ranks) -> Iterable[Problem]:
    """Return the first contradiction between groups that no host can be in at once."""
    try:
        site.expect(whole, ranks)
    except FileError as problem:
        return [Problem(whole.file, problem.line, str(problem))]
    return []
