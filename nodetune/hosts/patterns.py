"""Find the hosts that a text selects: node sets, comma lists, and Ansible's patterns over hosts and groups. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from nodetune.foundation import UserError, nodeset, text

_PART = re.compile(r"(?:[^,\[\]]|\[[^\]]*\]?|\])+")
_SUBSCRIPT = re.compile(r"(.+)\[(?:(-?\d{1,18})|(\d{1,18}):(\d{0,18}))\]")


class InventoryError(UserError):
    """An invalid inventory, node set or limit: one line with the fault, the place and the fix."""


def expand(text: str) -> list[str]:
    """Return the hosts of a comma list of names and node sets, in order, without duplicates. Raise InventoryError."""
    found: list[str] = []
    for part in (part.strip() for part in _PART.findall(text)):
        if part:
            found += [part] if _is_single(part) else _unfold(part)
    if not found:
        raise InventoryError(f"{text!r} names no hosts: give names such as gpu[001-128],login1, or an inventory")
    return list(dict.fromkeys(found))


def _is_single(part: str) -> bool:
    """Return whether a part is a plain name, or an IPv6 address in brackets."""
    address = r"(\S+@)?\[[0-9A-Fa-f.%\w]*:[0-9A-Fa-f:.%\w]*\](:\d+)?"
    return ("[" not in part and "]" not in part) or re.fullmatch(address, part) is not None


def _unfold(part: str) -> list[str]:
    try:
        return nodeset.unfold(part)
    except ValueError as problem:
        raise InventoryError(str(problem)) from None


def pick(limit: str, hosts: Sequence[str], groups: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the hosts that a limit selects: Ansible's patterns (`&`, `!`, `~regex`, groups, `@file`) and node sets.

    Raise InventoryError for a part that matches nothing: a typing error must not add or remove hosts.
    """
    parts = _parts(limit)
    plain = [part for part in parts if part[0] not in "&!"]
    chosen = set(hosts) if not plain else set()
    for part in plain:
        chosen |= _match(part, hosts, groups)
    for part in parts:
        if part[0] == "&":
            chosen &= _match(part[1:], hosts, groups)
    for part in parts:
        if part[0] == "!":
            chosen -= _match(part[1:], hosts, groups)
    if not chosen:
        raise InventoryError(f"--limit {limit!r} selects none of the {text.count(len(hosts), 'host')} in the inventory")
    return [host for host in hosts if host in chosen]


def _parts(limit: str) -> list[str]:
    """Split a limit at commas, else (like Ansible) at colons, but not inside brackets or IPv6 addresses."""
    parts: list[str] = []
    for piece in (piece.strip() for piece in _PART.findall(limit)):
        if piece.startswith("@"):
            parts += _from_file(piece[1:])
        elif "," in piece or piece.startswith("~") or re.fullmatch(r"[&!]?[0-9A-Fa-f]*(:[0-9A-Fa-f.]*){2,}", piece):
            parts.append(piece)
        else:
            parts += re.findall(r"(?:[^\s:\[\]]|\[[^\]]*\]?|\])+", piece)
    parts = [part for part in parts if part.strip("&! ")]
    if not parts:
        raise InventoryError(f"--limit {limit!r} names no hosts")
    return parts


def _from_file(name: str) -> list[str]:
    try:
        lines = Path(name).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise InventoryError(f"--limit @{name}: {getattr(problem, 'strerror', None) or 'not text'}") from None
    return [part for line in lines if line.strip() and not line.startswith("#") for part in _parts(line.strip())]


def _match(part: str, hosts: Sequence[str], groups: Mapping[str, Iterable[str]]) -> set[str]:
    """Return the hosts of one part: a host, a node set, or an Ansible pattern."""
    if part in hosts:
        return {part}
    if not part.startswith("~") and part.count("[") != part.count("]"):
        raise InventoryError(f"--limit {part!r}: a bracket is not closed: write it like gpu[001-128,200]")
    found = _node_set(part, hosts) or _ansible(part, hosts, groups)
    if not found:
        known = [name for name in groups if name not in ("all", "ungrouped")]
        there = f"the groups are {', '.join(known[:10])}" if known else f"the hosts are {', '.join(hosts[:10])}"
        raise InventoryError(f"--limit: no host or group matches {part!r}: {there}")
    return found


def _node_set(part: str, hosts: Sequence[str]) -> set[str]:
    if part.startswith("~") or not re.search(r"\[[\d,\-/ ]+\]", part):
        return set()
    try:
        named = set(expand(part))
    except InventoryError:
        return set()
    missing = sorted(named - set(hosts))
    if missing and len(missing) < len(named):
        raise InventoryError(
            f"--limit {part!r}: not in the inventory: {', '.join(missing[:5])}{' …' if len(missing) > 5 else ''}"
        )
    return set() if missing else named


def _ansible(part: str, hosts: Sequence[str], groups: Mapping[str, Iterable[str]]) -> set[str]:
    """Match by Ansible's rules: groups first; also hosts for a regular expression, a glob or an unknown group."""
    sub = None if part.startswith("~") else _SUBSCRIPT.fullmatch(part)
    name = sub[1] if sub else part
    if name == "all":
        found = list(hosts)
    else:
        named = _test(name, groups)
        found = [host for group in named for host in groups[group]]
        if not named or name.startswith("~") or set(name) & set(".?*["):
            found += _test(name, hosts)
    ordered = list(dict.fromkeys(found))
    if sub is None:
        return set(ordered)
    if sub[2]:
        number = int(sub[2])
        return {ordered[number]} if -len(ordered) <= number < len(ordered) else set()
    return set(ordered[int(sub[3]) : int(sub[4]) + 1 if sub[4] else None])


def _test(name: str, items: Iterable[str]) -> list[str]:
    if not name.startswith("~"):
        return [item for item in items if fnmatchcase(item, name)]
    try:
        pattern = re.compile(name[1:])
    except re.error as problem:
        raise InventoryError(f"--limit {name!r} is not a valid regular expression: {problem}") from None
    return [item for item in items if pattern.match(item)]
