"""Inventories, names and node sets → the hosts to reach, with their connection variables."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from nodetune import hosts, paths
from nodetune.hosts import BadInventory
from nodetune.inventory import reader
from nodetune.transport import Target, local

__all__ = ["BadInventory", "targets"]

_HOST = re.compile(r"(?:([^@\s]+)@)?(\[[^\[\]\s]+\]|[^:\[\]\s@]+|[0-9A-Fa-f:.]+(?:%\w+)?)(?::(\d{1,5}))?")


def targets(spec: str | None, limit: str | None = None) -> list[Target]:
    """The hosts that `--inventory` and `--limit` mean. Raises BadInventory.

    `spec` is a name under inventories/, a path, or host names and node sets; without it, this host.
    """
    groups: dict[str, list[str]] = {}
    if spec is None:
        found = [this_host()]
    else:
        path = _path(spec)
        if path:
            found, groups = reader.read(path)
        else:
            found = _named(spec)
    if limit is None:
        return found
    kept = set(hosts.pick(limit, [target.name for target in found], groups))
    return [target for target in found if target.name in kept]


def this_host() -> Target:
    return Target(local.name(), connection="local", python=sys.executable or "python3")


def _path(spec: str) -> Path | None:
    """The inventory file or folder that `spec` names; None when it names hosts."""
    if not spec.strip():
        raise BadInventory("--inventory is empty: give a name, a path or host names")
    given = Path(spec)
    if given.exists() and "," not in spec:
        return given
    if re.fullmatch(r"[\w.-]+", spec):
        for folder in _folders():
            for name in (spec, f"{spec}.yml", f"{spec}.yaml", f"{spec}.ini"):
                if (folder / name).exists():
                    return folder / name
    if "/" in spec or re.search(r"\.(ya?ml|ini|json|toml)$", spec):
        known = sorted(
            {each.name for folder in _folders() for each in folder.iterdir() if not each.name.startswith(".")}
        )
        raise BadInventory(
            f"no inventory {spec!r} here{': those in inventories/ are ' + ', '.join(known) if known else ''}"
        )
    return None


def _folders() -> list[Path]:
    folders = [Path("inventories")]
    with suppress(FileNotFoundError):
        folders.append(paths.shared("inventories"))
    return [folder for folder in folders if folder.is_dir()]


def _named(spec: str) -> list[Target]:
    """Hosts by name: `[user@]host[:port]`, commas, node sets."""
    found: dict[str, Target] = {}
    for text in hosts.expand(spec):
        parts = _HOST.fullmatch(text)
        if parts is None or parts[2].startswith("-") or int(parts[3] or 1) > 65535:
            raise BadInventory(f"{text!r} is no host: write [user@]host[:port], or the path of an inventory")
        name = parts[2].strip("[]")
        if text == "localhost":
            target = replace(this_host(), name=text)
        else:
            target = Target(name, address=name, port=int(parts[3]) if parts[3] else None, user=parts[1])
        if name in found:
            target = replace(target, name=text)
        found[target.name] = target
    return list(found.values())
