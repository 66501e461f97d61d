"""The MTU of a link at the next boot, where its owner would set another one than the .link file does.

systemd-networkd (netplan's too) gets a drop-in for the link's .network file, NetworkManager a default for the link. A line of
the connection, or of ifupdown, that sets an MTU is changed where it is. All of them leave alone what they do not set.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import PurePosixPath
from typing import Any

from nodetune.remediation.builders._own import named, render, whole_file
from nodetune.remediation.host_view import HostView, UnfixableError


def owners_change(link: str, mtu: str, alike: Collection[str], host: HostView) -> dict[str, Any] | None:
    """Return the change of the owner's file, or None if the .link file is enough. Raise UnfixableError.

    `alike` are all links that get this MTU.
    """
    _require_data_link(link, host)
    owners = {name: (known or {}).get("owner") for name, known in (host.readable("own.links") or {}).items()}
    owner = owners.get(link)
    if not owner:
        raise UnfixableError(f"{link}: what sets it at boot is unknown")
    by, file = owner["by"], str(owner["file"] or "")
    if owner["line"]:
        return _line(link, mtu, owner)
    if by == "networkd":
        name = named(PurePosixPath(file).name, ".network file", r"[\w.:@+-]+\.network")
        others = {each for each, known in owners.items() if (known or {}).get("file") == file} - set(alike)
        if others:
            raise UnfixableError(f"{file} is also for {', '.join(sorted(others))}: give {link} a file of its own first")
        folder = f"/etc/systemd/network/{name}.d"
        return whole_file(f"{folder}/zz-nodetune.conf", render("dropin.conf.j2", {"Link": {"MTUBytes": mtu}}))
    if by == "NetworkManager":
        if not file:
            raise UnfixableError(f"{link}: the file of its connection in NetworkManager is not there or cannot be read")
        text = render("nm.conf.j2", {"link": link, "mtu": mtu})
        return whole_file(f"/etc/NetworkManager/conf.d/zz-nodetune-{link}.conf", text)
    return None


def _require_data_link(link: str, host: HostView) -> None:
    routed = str(host.readable("net.default_interface") or "")
    master = host["net.links"].get(link, {}).get("master")
    if master:
        raise UnfixableError(f"{link} is a part of {master}, whose MTU holds for it: set that manually")
    if link in (routed, routed.partition(".")[0]):
        raise UnfixableError(f"{link} has the default route, and routers expect 1500 bytes: set its MTU manually")


def _line(link: str, mtu: str, owner: dict[str, Any]) -> dict[str, Any]:
    """Return the edit of the line that sets the MTU now."""
    old, path = str(owner["text"]), str(owner["file"])
    new, count = re.subn(r"\d+", mtu, old, count=1)
    if not path.startswith("/etc/") or ".." in path or not count:
        raise UnfixableError(f"{link}: {path} line {owner['line']} sets its MTU: change it where that file comes from")
    return {
        "change": "edit",
        "path": path,
        "how": "line",
        "with": {"number": owner["line"], "old": old, "new": new},
    }
