"""Resolve site files for one host: several files, values for groups and hosts, waivers for groups.

The more specific value wins: host over group, group over all. Of two groups, the one that Ansible reads last wins (a
child over its parent); of two files with values for the same hosts, the later one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nodetune.api.model import Waiver
from nodetune.config import site_file
from nodetune.config.overlay import Overlay, Rank
from nodetune.foundation.yaml_lines import FileError

Order = tuple[int, int, int, int]
"""How specific a section is for a host, then its file. Sections with equal order have no precedence."""


def read(paths: Sequence[Path]) -> Overlay | None:
    """Read site files, later ones over earlier ones; None without any. Raise FileError."""
    found: list[Overlay] = []
    for path in paths:
        added = [check.id for each in found for check in each.add]
        found.append(site_file.read(path, more=added))
    return stack(found) if found else None


def stack(files: Sequence[Overlay]) -> Overlay:
    """Stack several site files into one."""
    first = files[0]
    if len(files) == 1:
        return first
    added = {check.id: check for each in files for check in each.add}
    return replace(
        first,
        name="+".join(each.name for each in files),
        add=tuple(added.values()),
        waivers=tuple(waiver for each in files for waiver in each.waivers),
        profile=next((each.profile for each in reversed(files) if each.profile), ()),
        provision=next((each.provision for each in reversed(files) if each.provision), None),
        gpu_hour=next((each.gpu_hour for each in reversed(files) if each.gpu_hour), None),
        sections=tuple(replace(one, number=number) for number, each in enumerate(files) for one in each.sections),
        then=tuple(files[1:]),
    )


def expect(site: Overlay | None, ranks: Mapping[str, tuple[Rank, ...] | None]) -> None:
    """Set the inventory groups of hosts. Raise FileError if the files cannot be resolved for one of them."""
    if site and not _is_same_for_all(site):
        site.members.ranks.update(ranks)
        for host in ranks:
            of_host(site, host)


def for_all(site: Overlay | None) -> Overlay | None:
    """Return the site files for all hosts, without values for some hosts."""
    return site and replace(site, sections=(), waivers=tuple(each for each in site.waivers if not each.groups))


def for_section(site: Overlay, section: Overlay) -> Overlay:
    """Return the site files for hosts to which only this section applies."""
    whole = replace(site, sections=(), waivers=())
    return replace(whole, then=(*site.then, section)) if section.scope else whole


def of_host(site: Overlay | None, host: str) -> Overlay | None:
    """Return the site file resolved for one host. Hosts in the same groups share it. Raise FileError."""
    if site is None or _is_same_for_all(site):
        return site
    mine = _sections(site, host)
    groups = frozenset(name for name, _, _ in _ranks(site, host))
    key = mine, groups & {name for waiver in site.waivers for name in waiver.groups}
    if key not in site.members.made:
        _refuse_contradictions(mine, site, host)
        waivers = tuple(each for waiver in site.waivers for each in _for_groups(waiver, groups))
        nearer = tuple(site.sections[number] for number, _ in mine)
        site.members.made[key] = replace(site, then=(*site.then, *nearer), sections=(), waivers=waivers)
    return site.members.made[key]


def _is_same_for_all(site: Overlay) -> bool:
    return not site.sections and not any(waiver.groups for waiver in site.waivers)


def _for_groups(waiver: Waiver, groups: frozenset[str]) -> list[Waiver]:
    """Return a waiver resolved for hosts of these groups: it covers all of them or does not apply."""
    if not waiver.groups:
        return [waiver]
    return [replace(waiver, hosts="*", groups=())] if groups & set(waiver.groups) else []


def _ranks(site: Overlay, host: str) -> tuple[Rank, ...]:
    """Return the inventory groups of a host; a host of no inventory is in none."""
    return site.members.ranks.get(host) or ()


def covers(site: Overlay, waiver: Waiver, host: str) -> bool:
    """Return whether a waiver names a host, or an inventory group of it."""
    from nodetune.config import waivers

    if waiver.groups:
        return any(name in waiver.groups for name, _, _ in _ranks(site, host))
    return waivers.covers(waiver.hosts, host)


def groups_in(site: Overlay) -> list[str]:
    """Return the inventory groups that site files name."""
    sections = [each.scope.name for each in site.sections if each.scope and each.scope.kind == "groups"]
    return list(dict.fromkeys([*sections, *(name for waiver in site.waivers for name in waiver.groups)]))


def _sections(site: Overlay, host: str) -> tuple[tuple[int, Order], ...]:
    """Return the numbers of the sections for a host, in the order in which they apply."""
    from nodetune.config import waivers

    ranks = {name: (depth, priority) for name, depth, priority in _ranks(site, host)}
    found: list[tuple[int, Order]] = []
    for number, each in enumerate(site.sections):
        if each.scope and each.scope.kind == "groups" and each.scope.name in ranks:
            found.append((number, (1, *ranks[each.scope.name], each.number)))
        elif each.scope and each.scope.kind == "hosts" and waivers.covers(each.scope.name, host):
            found.append((number, (2, 0, 0, each.number)))
    return tuple(sorted(found, key=lambda one: one[1]))


def _refuse_contradictions(mine: Sequence[tuple[int, Order]], site: Overlay, host: str) -> None:
    """Raise FileError if two equally specific sections have different values for the host."""
    settled: set[tuple[str, str]] = set()
    for order in sorted({order for _, order in mine}, reverse=True):
        equal = [site.sections[number] for number, its in mine if its == order]
        said: dict[tuple[str, str], tuple[Any, Overlay]] = {}
        for each in equal:
            for key, value in _said(each):
                before, where = said.setdefault(key, (value, each))
                if before != value and key not in settled:
                    raise FileError(
                        f"{where.place(key[0])} and {each.place(key[0])} contradict each other on {key[0]} for "
                        f"{host}, and neither is more specific: remove one{_or_say(each, host)}"
                    )
        settled |= set(said)


def _or_say(section: Overlay, host: str) -> str:
    in_groups = section.scope and section.scope.kind == "groups"
    return f", or set the value for {host} under hosts" if in_groups else ""


def _said(section: Overlay) -> Iterable[tuple[tuple[str, str], Any]]:
    """Yield (check, setting) and its value: whether it is judged at all, and each of its settings."""
    for check_id, change in section.checks.items():
        settings = change if isinstance(change, dict) else {}
        yield (check_id, ""), "judged" if isinstance(change, dict) else change
        for name, value in settings.items():
            yield (check_id, name), value
