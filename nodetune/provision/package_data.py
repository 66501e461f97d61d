"""Package names by system: reads playbooks/packages (its README.md explains the keys)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from nodetune.foundation import paths

DRIVER_FAMILY = ("driver", "fabric-manager", "persistenced", "imex")
"""Parts that are of the driver's version and are installed in one transaction with it."""

RHEL = frozenset({"rhel", "rocky", "almalinux", "centos", "ol"})

OF_THE_DRIVER = re.compile(
    r"nvidia-(open|driver|kernel|dkms|firmware|persistenced|fabric-?manager|imex|modprobe|headless|utils|compute-utils)"
    r"|kmod-nvidia|cuda-drivers|libnvidia-(nscq|ml|compute|cfg|common)|libcuda1"
)
"""Beginnings of the names of packages that carry the driver's own version (NVIDIA driver installation guide, version locking:
https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/version-locking.html). NVLSM has versions of its own.
"""

APART = re.compile(r"nvidia-driver-(assistant|pinning)|nvidia-modprobe|nvidia-kernel-common")
"""Packages with a similar name but other versions: helpers, and packages of the distribution."""

Entry = Mapping[str, Any]


@dataclass(frozen=True)
class Needed:
    """The packages of one part on one host: from the site's repositories, from the host's own, and units to enable.

    `own_version` are those of `packages` that do not carry the driver's version; `replaces`: patterns of what may go for them.
    """

    packages: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    own_version: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()

    def data(self) -> dict[str, list[str]]:
        """Return the data for the playbook."""
        return {name: list(words) for name, words in vars(self).items()}


@dataclass(frozen=True)
class Catalogue:
    """One system's file, with what it starts from put in.

    `oldest` is the oldest branch of the driver whose packages are known; `family` has patterns of the package names of a
    driver from any vendor, `ours` the lower-case vendor of our driver packages.
    """

    system: str
    manager: str
    oldest: int
    family: tuple[str, ...]
    ours: str
    others: tuple[Entry, ...]
    parts: Mapping[str, Any]

    def needed(self, part: str, choices: Mapping[str, str], branch: str, kernel: str) -> Needed:
        """Return what a part needs with these choices."""
        given = self.parts[part]

        def named(key: str, own: bool | None = None) -> tuple[str, ...]:
            found = _chosen(given.get(key, ()), choices, branch, own)
            return tuple(name.replace("{branch}", branch).replace("{kernel}", kernel) for name in found)

        own = named("packages", own=True)
        replaces = self.family if part in DRIVER_FAMILY else named("replaces")
        return Needed(named("packages"), named("needs"), named("services"), own, replaces)


def _chosen(entries: Any, choices: Mapping[str, str], branch: str, own: bool | None) -> Iterator[str]:
    for entry in entries:
        each: Entry = {"name": entry} if isinstance(entry, str) else entry
        number = int(branch or 0)
        met = all(choices.get(name) == value for name, value in each.get("when", {}).items())
        in_time = int(each.get("since", 0)) <= number <= int(each.get("until", number))
        if met and in_time and (own is None or bool(each.get("own_version")) is own):
            yield str(each["name"])


def system_of(release: Mapping[str, Any]) -> str:
    """Return the system's name in the data and in a lock, by its os-release: ubuntu-22.04, rhel-9; or ""."""
    kind, version = str(release.get("id", "")), str(release.get("version", ""))
    if RHEL & {kind, *map(str, release.get("like") or ())} and kind != "fedora":
        kind, version = "rhel", version.partition(".")[0]
    return f"{kind}-{version}" if kind and version else ""


def moves_with_driver(package: str) -> bool:
    """Return whether a package must be of the very version of the driver."""
    return bool(OF_THE_DRIVER.match(package)) and not APART.match(package)


@cache
def known() -> tuple[str, ...]:
    """Return the systems that have data."""
    return tuple(sorted(path.stem for path in (paths.shared("playbooks") / "packages").glob("*.yml")))


@cache
def load(system: str) -> Catalogue:
    """Load the data of one of the known systems."""
    found = content(system)
    family, ours = tuple(found["family"]), found["ours"].lower()
    return Catalogue(system, found["manager"], found["oldest"], family, ours, tuple(found["others"]), found["parts"])


def content(system: str) -> dict[str, Any]:
    """Return a system's file as it is, after what it starts from."""
    import yaml

    own = yaml.safe_load((paths.shared("playbooks") / "packages" / f"{system}.yml").read_text("utf-8"))
    if "like" not in own:
        return dict(own)
    base = content(own["like"])
    return {**base, **own, "parts": {**base["parts"], **own.get("parts", {})}}


def facts() -> set[str]:
    """Return the facts that show what is installed, and by whom, on a host of any system."""
    every = [load(system) for system in known()]
    patterns = {pattern for each in every for pattern in each.family}
    patterns |= {pattern for each in every for other in each.others for pattern in other.get("packages", ())}
    files = {path for each in every for other in each.others for path in other.get("files", ())}
    return {f"packages.like.{pattern}" for pattern in patterns} | {f"packages.file.{path}" for path in files}
