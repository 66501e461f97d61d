"""Site files as they are for one host: several files, values for groups and hosts, waivers for groups.

Of two values the nearer one counts: for a host over for its group, for a group over for all. Of two groups the one that
Ansible takes last counts (a child over its parent), and of two files that say it for the same hosts the later one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nodetune.api.model import Waiver
from nodetune.config import site_file
from nodetune.config.overlay import Overlay, Rank
from nodetune.foundation.yaml_lines import FileError

Order = tuple[int, int, int, int]
"""How near a section is to a host, then its file: of two sections with the same order neither comes first."""


def read(paths: Sequence[Path]) -> Overlay | None:
    """Read site files, later ones over earlier ones; None without any. Raise FileError."""
    found: list[Overlay] = []
    for path in paths:
        added = [check.id for each in found for check in each.add]
        found.append(site_file.read(path, more=added))
    return stack(found) if found else None


def stack(files: Sequence[Overlay]) -> Overlay:
    """Return several site files as one."""
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
        sections=tuple(replace(one, number=number) for number, each in enumerate(files) for one in each.sections),
        then=tuple(files[1:]),
    )


def expect(site: Overlay | None, ranks: Mapping[str, tuple[Rank, ...] | None]) -> None:
    """Say which inventory groups hosts are in. Raise FileError if what the files say for one of them cannot be told."""
    if site and not _is_same_for_all(site):
        site.members.ranks.update(ranks)
        for host in ranks:
            of_host(site, host)


def for_all(site: Overlay | None) -> Overlay | None:
    """Return what site files say for all hosts, without their values for some."""
    return site and replace(site, sections=(), waivers=tuple(each for each in site.waivers if not each.groups))


def for_section(site: Overlay, section: Overlay) -> Overlay:
    """Return what site files say for hosts of which only this section is about."""
    whole = replace(site, sections=(), waivers=())
    return replace(whole, then=(*site.then, section)) if section.scope else whole


def of_host(site: Overlay | None, host: str) -> Overlay | None:
    """Return the site file as it is for one host: hosts of the same groups share it. Raise FileError."""
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
    """Return a waiver as it is for hosts of these groups: it names them all, or is none of theirs."""
    if not waiver.groups:
        return [waiver]
    return [replace(waiver, hosts="*", groups=())] if groups & set(waiver.groups) else []


def _ranks(site: Overlay, host: str) -> tuple[Rank, ...]:
    """Return the inventory groups of a host. Raise FileError where the files need them and nothing tells."""
    ranks = site.members.ranks.get(host)
    if ranks is None and (uses := groups_in(site)):
        raise FileError(
            f"{site.file}: values or waivers for the group {uses[0]}: which hosts are in it, only an inventory says; "
            "give it with -i"
        )
    return ranks or ()


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
    """Raise FileError where two sections, of which neither is nearer to the host, say different things."""
    settled: set[tuple[str, str]] = set()
    for order in sorted({order for _, order in mine}, reverse=True):
        equal = [site.sections[number] for number, its in mine if its == order]
        said: dict[tuple[str, str], tuple[Any, Overlay]] = {}
        for each in equal:
            for key, value in _said(each):
                before, where = said.setdefault(key, (value, each))
                if before != value and key not in settled:
                    raise FileError(
                        f"{where.place(key[0])} and {each.place(key[0])} contradict each other on {key[0]} for {host}, "
                        f"and neither is nearer to it: take one out{_or_say(each, host)}"
                    )
        settled |= set(said)


def _or_say(section: Overlay, host: str) -> str:
    in_groups = section.scope and section.scope.kind == "groups"
    return f", or say under hosts what holds for {host}" if in_groups else ""


def _said(section: Overlay) -> Iterable[tuple[tuple[str, str], Any]]:
    """Yield (check, what of it) and its value: whether it is judged at all, and each of its settings."""
    for check_id, change in section.checks.items():
        settings = change if isinstance(change, dict) else {}
        yield (check_id, ""), "judged" if isinstance(change, dict) else change
        for name, value in settings.items():
            yield (check_id, name), value
