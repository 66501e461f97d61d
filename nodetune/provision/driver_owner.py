"""Find the owner of a host's driver: two owners overwrite each other's files, so the first one is kept. Pure."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from nodetune.foundation import text
from nodetune.provision.facts import HostRefusedError, ProvisionFacts
from nodetune.provision.package_data import Catalogue, moves_with_driver

Installed = Mapping[str, Mapping[str, str]]
"""Name → version, maker."""

MODULES = ("*kmod*nvidia*", "nvidia-*kmod*", "nvidia-dkms*", "linux-modules-nvidia-*")
"""Packages that bring kernel modules by names that NVIDIA's own do not have, or not alone."""


def check(seen: ProvisionFacts, data: Catalogue, installed: Installed) -> None:
    """Raise HostRefusedError if there is a driver that is not from our packages."""
    _no_known_other(seen, data, installed)
    drivers = [name for name in installed if moves_with_driver(name) or like(name, MODULES)]
    others = sorted(name for name in drivers if data.ours not in _maker(installed[name]))
    if others:
        maker = text.plain(installed[others[0]].get("maker") or "an unknown vendor", 60)
        raise HostRefusedError(
            f"the installed driver comes from another source: {maker} ({text.names(others[:4])})",
            "nothing was changed; to let nodetune manage the driver, uninstall it the way it was installed, then reboot",
        )
    running, module = seen("packages.running_driver"), seen("packages.module.nvidia")
    if (running or module) and not drivers:
        where = f"version {running['version']} is loaded" if running else str(module["file"])
        raise HostRefusedError(
            f"the driver does not come from an NVIDIA package ({text.plain(where)})",
            "nothing was changed; uninstall it the way it was installed, then reboot",
        )


def _no_known_other(seen: ProvisionFacts, data: Catalogue, installed: Installed) -> None:
    """Refuse other owners that the package data knows, with the way to remove their driver."""
    for other in data.others:
        signs = [path for path in other.get("files", ()) if seen(f"packages.file.{path}", False)]
        signs += [
            name
            for name, about in installed.items()
            if like(name, other.get("packages", ())) and str(other.get("maker", "")).lower() in _maker(about)
        ]
        if signs:
            raise HostRefusedError(
                f"the installed driver comes from another source: {other['owner']} ({text.names(sorted(signs)[:4])})",
                f"nothing was changed; to let nodetune manage the driver, remove it first ({other['remove']}) and reboot",
            )


def like(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _maker(about: Mapping[str, str]) -> str:
    return str(about.get("maker", "")).lower()
