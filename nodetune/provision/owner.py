"""Whose driver a host has: two owners of one driver overwrite each other's files, so whoever was first is left alone. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from nodetune import show
from nodetune.provision.catalogue import Catalogue
from nodetune.provision.lock import moves_with_driver
from nodetune.provision.seen import Refused, Seen

Installed = Mapping[str, Mapping[str, str]]
"""Name → version, maker."""

MODULES = ("*kmod*nvidia*", "nvidia-*kmod*", "nvidia-dkms*", "linux-modules-nvidia-*")
"""Packages that bring kernel modules by names that NVIDIA's own do not have, or not alone."""


def check(seen: Seen, data: Catalogue, installed: Installed) -> None:
    """Raises Refused where a driver is there that is not of our packages."""
    _no_known_other(seen, data, installed)
    drivers = [name for name in installed if moves_with_driver(name) or like(name, MODULES)]
    others = sorted(name for name in drivers if data.ours not in _maker(installed[name]))
    if others:
        maker = show.plain(installed[others[0]].get("maker") or "a maker that is not named", 60)
        raise Refused(
            f"the driver here is of another owner: {maker} ({show.names(others[:4])})",
            "nothing was changed; to let nodetune have it, remove it as it was installed, and reboot",
        )
    running, module = seen("packages.running_driver"), seen("packages.module.nvidia")
    if (running or module) and not drivers:
        where = f"version {running['version']} is loaded" if running else str(module["file"])
        raise Refused(
            f"there is a driver that no package of NVIDIA's brought ({show.plain(where)})",
            "nothing was changed; remove it as it was installed, and reboot",
        )


def _no_known_other(seen: Seen, data: Catalogue, installed: Installed) -> None:
    """Owners that the package data knows: it says how they take their driver away."""
    for other in data.others:
        signs = [path for path in other.get("files", ()) if seen(f"packages.file.{path}", False)]
        signs += [
            name
            for name, about in installed.items()
            if like(name, other.get("packages", ())) and str(other.get("maker", "")).lower() in _maker(about)
        ]
        if signs:
            raise Refused(
                f"the driver here is of another owner: {other['owner']} ({show.names(sorted(signs)[:4])})",
                f"nothing was changed; to let nodetune have it, remove it first ({other['remove']}) and reboot",
            )


def like(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _maker(about: Mapping[str, str]) -> str:
    return str(about.get("maker", "")).lower()
