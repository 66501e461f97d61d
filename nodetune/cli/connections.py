"""The hosts that a command connects to."""

from __future__ import annotations

import re
import socket
import time

from nodetune.cli import verbosity
from nodetune.foundation import text
from nodetune.hosts import inventory
from nodetune.hosts.inventory import InventoryError
from nodetune.hosts.target import ConnectionOptions, Target, UnreachableError


def selected_hosts(reach: ConnectionOptions) -> list[Target]:
    """Return the hosts that the options select. Raise InventoryError, also for a name of nothing."""
    began = time.monotonic()
    found = inventory.selected(reach)
    _explain(reach, len(found), time.monotonic() - began)
    spec = reach.inventory or ""
    if reach.transport not in ("slurm", "local") and re.fullmatch(r"[\w.-]+", spec) and inventory.find(spec) is None:
        for target in found[:1]:
            _require_host(target)
    return found


def _explain(reach: ConnectionOptions, hosts: int, seconds: float) -> None:
    """Say with -v which inventory was read."""
    if verbosity.is_verbose() and reach.inventory:
        path = inventory.find(reach.inventory)
        read = f"{path}: read in {seconds:.1f} s" if path else f"{reach.inventory}: names of hosts"
        verbosity.detail(f"inventory {read}; {text.count(hosts, 'host')} selected")


def _require_host(target: Target) -> None:
    """Raise InventoryError if neither OpenSSH's configuration nor the resolver knows a host of this name."""
    if target.connection == "local" or _is_configured(target):
        return
    try:
        socket.getaddrinfo(target.address, None)
    except socket.gaierror as problem:
        if problem.errno in (socket.EAI_NONAME, socket.EAI_NODATA):
            raise InventoryError(_unknown(target.name)) from None
    except (OSError, UnicodeError):
        return


def _is_configured(target: Target) -> bool:
    """Return whether OpenSSH reaches the name in a way of its own: by another name, or from another machine."""
    from nodetune.remote.login import ssh_config

    try:
        settings = ssh_config.Resolver().resolve(target)
    except UnreachableError:
        return True  # the connection says why
    return settings.host != settings.name or bool(settings.one("proxyjump") or settings.one("proxycommand"))


def _unknown(name: str) -> str:
    known = inventory.known()
    near = text.alike(name, known, 1)
    there = f"inventories: {', '.join(known)}" if known else "there is no folder inventories/ here"
    asks = f": did you mean -i {near[0]}?" if near else ""
    return f"no inventory and no host is called {text.plain(name)!r}{asks} ({there})"
