"""The hosts that a command connects to; an inventory or host that does not exist is refused here."""

import socket
import time
from collections.abc import Callable

from nodetune.foundation import text
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.hosts.inventory import selection
from nodetune.hosts.patterns import InventoryError
from nodetune.hosts.target import Target, UnreachableError


def selected_hosts(connection: ConnectionOptions, detail: Callable[[str], None]) -> list[Target]:
    """Return the hosts that the options select. `detail` gets what was read. Raise InventoryError, also for an unknown name."""
    if connection.transport == "kubernetes":
        from nodetune.remote.kubernetes import nodes  # only this transport needs it

        return nodes.selected(connection, detail)
    began = time.monotonic()
    found = selection.selected(connection)
    spec = connection.inventory or ""
    path = selection.find(spec) if spec else None
    if spec:
        read = f"{path}: read in {time.monotonic() - began:.1f} s" if path else f"{spec}: host names"
        detail(f"inventory {read}; {text.count(len(found), 'host')} selected")
    if connection.transport not in ("slurm", "local") and selection.is_one_name(spec) and path is None:
        for target in found[:1]:
            _require_host(target)
    return found


def _require_host(target: Target) -> None:
    """Raise InventoryError if neither OpenSSH's configuration nor the resolver knows a host of this name."""
    if target.connection == "local" or _is_configured(target):
        return
    try:
        socket.getaddrinfo(target.address, None)
    except socket.gaierror as problem:
        if problem.errno in (socket.EAI_NONAME, socket.EAI_NODATA):
            raise InventoryError(selection.unknown(target.name)) from None
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
