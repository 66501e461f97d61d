"""Inventories, names and node sets → the hosts to reach, with their connection variables."""

import re
import socket
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from nodetune.foundation import paths
from nodetune.foundation import text as plain_text
from nodetune.hosts import patterns
from nodetune.hosts.connection_options import ConnectionOptions, Vault
from nodetune.hosts.inventory import reader
from nodetune.hosts.patterns import InventoryError
from nodetune.hosts.target import Target

_HOST = re.compile(r"(?:([^@\s]+)@)?(\[[^\[\]\s]+\]|[^:\[\]\s@]+|[0-9A-Fa-f:.]+(?:%\w+)?)(?::(\d{1,5}))?")


def selected(options: ConnectionOptions) -> list[Target]:
    """Return the hosts that the options select, with the options applied to them. Raise InventoryError."""
    found = targets(options.inventory, options.limit, options.vault, options.inventory_named_by)
    if options.transport == "local" and len(found) > 1:
        raise InventoryError(f"--transport local reaches only this host, but {len(found)} hosts are selected")
    wanted = [options.applied_to(target) for target in found if options.wants(target.name)]
    if options.only and not wanted:
        some = ", ".join(sorted(options.only)[:5])
        raise InventoryError(
            f"--failed-of: none of its hosts are selected ({plain_text.plain(some, 100)}): select them with -i"
        )
    return wanted


def targets(spec: str | None, limit: str | None = None, vault: Vault | None = None, named_by: str = "") -> list[Target]:
    """Return the hosts that `--inventory` and `--limit` select. Raise InventoryError.

    `spec` is a name under inventories/, a path, or host names and node sets; without it, this host. `named_by`: see
    reader.read.
    """
    groups: dict[str, list[str]] = {}
    if spec is None:
        found = [this_host()]
    else:
        path = find(spec)
        if path:
            found, groups = reader.read(path, spec, vault, named_by)
        else:
            found = _named(spec)
    if limit is None:
        return found
    kept = set(patterns.pick(limit, [target.name for target in found], groups))
    return [target for target in found if target.name in kept]


def this_host() -> Target:
    return Target(socket.gethostname(), connection="local", python=sys.executable or "python3")


def find(spec: str) -> Path | None:
    """Return the inventory file or folder that `spec` names, or None if it names hosts."""
    if not spec.strip():
        raise InventoryError("--inventory is empty: give a name, a path or host names")
    if is_there(spec):
        return Path(spec)
    if is_one_name(spec):
        for folder in _folders():
            for name in (spec, f"{spec}.yml", f"{spec}.yaml", f"{spec}.ini"):
                if (folder / name).exists():
                    return folder / name
    if "/" in spec or reader.ENDING.search(spec):
        there = known()
        raise InventoryError(
            f"no such file or folder: {spec}{' (inventories by name: ' + ', '.join(there) + ')' if there else ''}"
        )
    return None


def is_there(spec: str) -> bool:
    """Return whether `path` is a file or folder. A list of host names is neither, and may be too long for a path."""
    with suppress(OSError):
        return "," not in spec and Path(spec).exists()
    return False


def is_one_name(spec: str) -> bool:
    """Return whether `spec` may be the name of an inventory, or of one host."""
    return bool(re.fullmatch(r"[\w.-]+", spec))


def unknown(name: str) -> str:
    """Return the message for a name that neither an inventory nor a host has."""
    there = known()
    near = plain_text.alike(name, there, 1)
    looked = f"looked in {Path('inventories').absolute()}; nodetune init writes an example"
    looked = f"{looked}; inventories: {', '.join(there)}" if there else looked
    asks = f": did you mean -i {near[0]}?" if near else ""
    return f"no inventory or host is named {plain_text.plain(name)!r}{asks} ({looked})"


def known() -> list[str]:
    """Return the names of the inventories in inventories/, as `-i` takes them."""
    names = {reader.ENDING.sub("", each.name) for folder in _folders() for each in folder.iterdir()}
    return sorted(name for name in names if name[0] != "." and name not in ("group_vars", "host_vars"))


def _folders() -> list[Path]:
    folders = [Path("inventories")]
    with suppress(FileNotFoundError):
        folders.append(paths.shared("inventories"))
    return [folder for folder in folders if folder.is_dir()]


def _named(spec: str) -> list[Target]:
    """Return hosts by name: `[user@]host[:port]`, commas, node sets."""
    found: dict[str, Target] = {}
    for text in patterns.expand(spec):
        parts = _HOST.fullmatch(text)
        if parts is None or parts[2].startswith("-") or int(parts[3] or 1) > 65535:
            raise InventoryError(f"{text!r} is not a valid host: write [user@]host[:port] or the path of an inventory")
        name = parts[2].strip("[]")
        if text == "localhost":
            target = replace(this_host(), name=text)
        else:
            target = Target(name, address=name, port=int(parts[3]) if parts[3] else None, user=parts[1])
        if name in found:
            target = replace(target, name=text)
        found[target.name] = target
    return list(found.values())
