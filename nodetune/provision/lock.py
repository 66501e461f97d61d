"""The lock file: which versions each kind of system gets, so that the hundredth node equals the first.

YAML for people to review and to keep in git (schema nodetune.lock/1):

    schema: nodetune.lock/1
    systems:
      debian-12-x86_64:
        driver: 580.159.04
        packages: {nvidia-open: 580.159.04-1, …}

The kernel driver, Fabric Manager, NSCQ, IMEX and persistenced speak to one another in a protocol of one version only: a
lock in which they differ is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nodetune import located, whole
from nodetune.located import BadFile, Located

SCHEMA = "nodetune.lock/1"
SYSTEM = re.compile(r"[a-z]+-\d+(\.\d+)?-(x86_64|aarch64)")
DRIVER = re.compile(r"\d{3,4}\.\d+(\.\d+)?")
PACKAGE = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9+._-]*")
VERSION = re.compile(r"(\d+:)?[a-zA-Z0-9][a-zA-Z0-9+.~^_-]*")
OF_THE_DRIVER = re.compile(
    r"nvidia-(open|driver|kernel|dkms|firmware|persistenced|fabric-?manager|imex|modprobe|headless|utils|compute-utils)"
    r"|kmod-nvidia|cuda-drivers|libnvidia-(nscq|ml|compute|cfg|common)|libcuda1"
)
"""Beginnings of the names of packages that carry the driver's own version (NVIDIA driver installation guide, version locking:
https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/version-locking.html). NVLSM has versions of its own.
"""

APART = re.compile(r"nvidia-driver-(assistant|pinning)|nvidia-modprobe|nvidia-kernel-common")
"""What begins alike and has versions of its own: helpers, and what a distribution has as well."""

HEAD = """\
# The versions that nodetune installs, by system. Written by `nodetune lock`; review it, and keep it in git.
"""


@dataclass(frozen=True)
class Versions:
    """What one kind of system gets. `driver` is NVIDIA's own version of the driver; empty: no driver is among them."""

    driver: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)


Lock = Mapping[str, Versions]
"""System with architecture (debian-12-x86_64) → its versions."""


def upstream(version: str) -> str:
    """NVIDIA's version in a package's: `1:580.159.04-1.el9` and `580.159.04-0ubuntu1` → 580.159.04."""
    return re.sub(r"^\d+:", "", version).partition("-")[0]


def moves_with_driver(package: str) -> bool:
    """Whether a package must be of the very version of the driver."""
    return bool(OF_THE_DRIVER.match(package)) and not APART.match(package)


def mismatched(found: Versions) -> dict[str, str]:
    """Packages that have to carry the driver's version and carry another: name → version."""
    if not found.driver:
        return {}
    return {
        name: version
        for name, version in found.packages.items()
        if moves_with_driver(name) and upstream(version) != found.driver
    }


def read(path: Path) -> dict[str, Versions]:
    """Read and check a lock file. Raises BadFile with file and line."""
    file = located.load(path)
    data = file.data
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        file.fail(
            f"no lock file of this version: it begins with `schema: {SCHEMA}`; write one with nodetune lock -o {path}"
        )
    for key in data:
        if key not in ("schema", "systems"):
            file.fail(f"a lock file has schema and systems, and no {key!r}", key)
    systems = data.get("systems")
    if not isinstance(systems, dict):
        file.fail("systems wants a mapping such as {debian-12-x86_64: {driver: …, packages: …}}", "systems")
    return {name: _versions(file, name, each) for name, each in systems.items()}


def _versions(file: Located, name: Any, given: Any) -> Versions:
    at = ("systems", name)
    if not isinstance(name, str) or not SYSTEM.fullmatch(name):
        file.fail(f"{name!r} is no system: write it as debian-12-x86_64", *at)
    if not isinstance(given, dict) or not set(given) <= {"driver", "packages"}:
        file.fail(f"{name} wants {{driver: version, packages: {{name: version}}}}", *at)
    driver = given.get("driver", "")
    if driver and not (isinstance(driver, str) and DRIVER.fullmatch(driver)):
        file.fail(
            f"driver is {driver!r} and no version such as 580.159.04 (in quotes where it has one dot)", *at, "driver"
        )
    packages = given.get("packages", {})
    if not isinstance(packages, dict):
        file.fail("packages wants a mapping of package to version", *at, "packages")
    for package, version in packages.items():
        _checked(file, package, version, *at, "packages", package)
    return _agreeing(file, name, Versions(driver, packages))


def _checked(file: Located, package: Any, version: Any, *at: Any) -> None:
    if not isinstance(package, str) or not PACKAGE.fullmatch(package):
        file.fail(f"{package!r} is no package's name", *at)
    if not isinstance(version, str):
        file.fail(f'the version of {package} is {version!r}: write it in quotes, as "{version}"', *at)
    if not VERSION.fullmatch(version):
        file.fail(f"{package} has no version of the form 1.2.3-1: {version!r}", *at)


def _agreeing(file: Located, name: str, found: Versions) -> Versions:
    """Driver and what must equal it: together or not at all."""
    if not found.driver:
        wanting = next(filter(moves_with_driver, found.packages), "")
        if wanting:
            file.fail(f"{wanting} is of the driver's version, and no driver: is named", "systems", name)
        return found
    for package, version in mismatched(found).items():
        file.fail(
            f"{package} is {version} and the driver {found.driver}: the two must be of one version; lock again with "
            "nodetune lock, or wait until the repository has both",
            *("systems", name, "packages", package),
        )
    return found


def check(found: Versions, name: str) -> None:
    """The same for versions that are about to be written. Raises BadFile."""
    _agreeing(Located(f"the versions found for {name}", None), name, found)


def merged(old: Lock, new: Lock) -> dict[str, Versions]:
    """What was asked now over what was locked before: whole systems, never single packages of one."""
    return dict(sorted({**old, **new}.items()))


def text(found: Lock) -> str:
    """The file's text."""
    lines = [HEAD + f"schema: {SCHEMA}", "systems:" if found else "systems: {}"]
    for system, versions in sorted(found.items()):
        lines.append(f"  {system}:")
        lines += [f'    driver: "{versions.driver}"'] if versions.driver else []
        lines.append("    packages:" if versions.packages else "    packages: {}")
        lines += [f'      {name}: "{version}"' for name, version in sorted(versions.packages.items())]
    return "\n".join(lines) + "\n"


def write(path: Path, found: Lock) -> None:
    """Write a lock file whole. Raises OSError."""
    whole.write(path, text(found))


def changes(old: Versions, new: Versions) -> list[tuple[str, str, str]]:
    """(package, before, after) of everything that differs; empty where one side has none."""
    names = sorted({*old.packages, *new.packages})
    pairs = ((name, old.packages.get(name, ""), new.packages.get(name, "")) for name in names)
    return [(name, before, after) for name, before, after in pairs if before != after]


__all__ = [
    "BadFile",
    "Lock",
    "Versions",
    "changes",
    "check",
    "merged",
    "mismatched",
    "read",
    "text",
    "upstream",
    "write",
]
