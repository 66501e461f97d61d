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

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nodetune.foundation import file_io, yaml_lines
from nodetune.foundation.yaml_lines import LocatedYaml
from nodetune.provision.package_data import moves_with_driver

SCHEMA = "nodetune.lock/1"
SYSTEM = re.compile(r"[a-z]+-\d+(\.\d+)?-(x86_64|aarch64)")
DRIVER = re.compile(r"\d{3,4}\.\d+(\.\d+)?")
PACKAGE = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9+._-]*")
VERSION = re.compile(r"(\d+:)?[a-zA-Z0-9][a-zA-Z0-9+.~^_-]*")
HEAD = """\
# The versions that nodetune installs, by system. Written by `nodetune lock`; review it, and keep it in git.
"""


@dataclass(frozen=True)
class Versions:
    """The versions for one system. `driver` is NVIDIA's own version of the driver; empty without a driver."""

    driver: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)


Lock = Mapping[str, Versions]
"""System with architecture (debian-12-x86_64) → its versions."""


def upstream(version: str) -> str:
    """Return NVIDIA's version of a package: `1:580.159.04-1.el9` and `580.159.04-0ubuntu1` → 580.159.04."""
    return re.sub(r"^\d+:", "", version).partition("-")[0]


def mismatched(found: Versions) -> dict[str, str]:
    """Return the packages that need the driver's version and have another: name → version."""
    if not found.driver:
        return {}
    return {
        name: version
        for name, version in found.packages.items()
        if moves_with_driver(name) and upstream(version) != found.driver
    }


def read(path: Path) -> dict[str, Versions]:
    """Read and check a lock file. Raise FileError with file and line."""
    file = yaml_lines.load(path)
    data = file.data
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        file.fail(
            f"not a lock file of this version, which begins with `schema: {SCHEMA}`: write one with nodetune lock -o {path}"
        )
    for key in data:
        if key not in ("schema", "systems"):
            file.fail(f"unknown key {key!r}: a lock file has schema and systems", key)
    systems = data.get("systems")
    if not isinstance(systems, dict):
        file.fail("systems must be a mapping such as {debian-12-x86_64: {driver: …, packages: …}}", "systems")
    return {name: _versions(file, name, each) for name, each in systems.items()}


def _versions(file: LocatedYaml, name: Any, entry: Any) -> Versions:
    at = ("systems", name)
    if not isinstance(name, str) or not SYSTEM.fullmatch(name):
        file.fail(f"{name!r} is not a system: write it as debian-12-x86_64", *at)
    if not isinstance(entry, dict) or not set(entry) <= {"driver", "packages"}:
        file.fail(f"{name} must be {{driver: version, packages: {{name: version}}}}", *at)
    driver = entry.get("driver", "")
    if driver and not (isinstance(driver, str) and DRIVER.fullmatch(driver)):
        file.fail(
            f"driver {driver!r} is not a version such as 580.159.04 (quote it if it has only one dot)", *at, "driver"
        )
    packages = entry.get("packages", {})
    if not isinstance(packages, dict):
        file.fail("packages must map package names to versions", *at, "packages")
    for package, version in packages.items():
        _checked(file, package, version, *at, "packages", package)
    return _agreeing(file, name, Versions(driver, packages))


def _checked(file: LocatedYaml, package: Any, version: Any, *at: Any) -> None:
    if not isinstance(package, str) or not PACKAGE.fullmatch(package):
        file.fail(f"{package!r} is not a package name", *at)
    if not isinstance(version, str):
        file.fail(f'the version of {package} is {version!r}: write it in quotes, as "{version}"', *at)
    if not VERSION.fullmatch(version):
        file.fail(f"{package} needs a version such as 1.2.3-1, found {version!r}", *at)


def _agreeing(file: LocatedYaml, name: str, found: Versions) -> Versions:
    """Check that the driver and what must equal it are there together or not at all."""
    if not found.driver:
        wanting = next(filter(moves_with_driver, found.packages), "")
        if wanting:
            file.fail(f"{wanting} must have the driver's version, but driver: is missing", "systems", name)
        return found
    for package, version in mismatched(found).items():
        file.fail(
            f"{package} is {version} and the driver {found.driver}; both need the same version: run "
            "nodetune lock again, or wait until the repository has both",
            *("systems", name, "packages", package),
        )
    return found


def check(found: Versions, name: str) -> None:
    """Validate versions from hosts before writing them. Raise FileError."""
    given = {"driver": found.driver, "packages": dict(found.packages)}
    _versions(LocatedYaml(f"the versions found for {name}", None), name, given)


def merged(old: Lock, new: Lock) -> dict[str, Versions]:
    """Merge new versions into the lock: whole systems, never single packages of one."""
    return dict(sorted({**old, **new}.items()))


def text(found: Lock) -> str:
    """Return the file's text."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Versions are in quotes: 580.65 is not a number."""

    Dumper.add_representer(_Version, lambda dumper, version: dumper.represent_scalar(_STRING, str(version), style='"'))
    data = {"schema": SCHEMA, "systems": {name: _data(each) for name, each in sorted(found.items())}}
    return HEAD + yaml.dump(data, Dumper=Dumper, sort_keys=False, width=1000)


_STRING = "tag:yaml.org,2002:str"


class _Version(str):
    """A version of a package."""

    __slots__ = ()


def _data(versions: Versions) -> dict[str, Any]:
    driver = {"driver": _Version(versions.driver)} if versions.driver else {}
    return {**driver, "packages": {name: _Version(each) for name, each in sorted(versions.packages.items())}}


def write(path: Path, found: Lock) -> None:
    """Write a lock file whole. Raise OSError."""
    file_io.write(path, text(found))


def changes(old: Versions, new: Versions) -> list[tuple[str, str, str]]:
    """Return (package, before, after) of everything that differs; empty where one side has none."""
    names = sorted({*old.packages, *new.packages})
    pairs = ((name, old.packages.get(name, ""), new.packages.get(name, "")) for name in names)
    return [(name, before, after) for name, before, after in pairs if before != after]
