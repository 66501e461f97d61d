"""Decide what to install on a host from its facts, the site file, the lock and the package data. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nodetune.api.model import HostFacts
from nodetune.audit import gpu_users
from nodetune.audit.selection import ALWAYS
from nodetune.config.site_provision import Provision
from nodetune.foundation import text
from nodetune.guard.deploy.paths import OLDEST_PYTHON, PYTHONS
from nodetune.provision import driver_owner, exporter, gds, package_data
from nodetune.provision.facts import HostRefusedError, ProvisionFacts
from nodetune.provision.lock import Lock, Versions, upstream
from nodetune.provision.package_data import Catalogue, Needed, moves_with_driver

FACTS = frozenset(
    {
        *ALWAYS,
        *gpu_users.FACTS,
        "gpu.driver_version",
        "host.container",
        "host.pythons",
        "modules.loaded",
        "packages.manager",
        "packages.installed",
        "packages.running_driver",
        "packages.device_users",
        "packages.module.nvidia",
        "pci.devices",
        "pci.gpus",
        *exporter.FACTS,
        *gds.FACTS,
    }
)
"""Facts in addition to catalogue.facts() and lock_facts()."""

OWN_REPOSITORIES = ("tools", "time")
"""Parts that hosts may have from their distribution's repositories, and whose versions need no lock; inbox RDMA is another."""

TURING, BLACKWELL = 0x1E00, 0x2900
"""The first PCI device IDs of these architectures (https://pci-ids.ucw.cz/read/PC/10de): the open kernel modules are for Turing
and newer, the proprietary ones for what is older; Blackwell takes the open ones only
(https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/kernel-modules.html).
"""

GRACE_HOPPER = ("2342", "2348")
BLACKWELL_HGX = ("2901", "3182")
"""B200 and B300 on HGX boards. Their NVSwitches are not PCI devices of the host, so the GPUs imply them."""

NVSWITCH_CLASS = "0680"
NVIDIA = "10de"

NOT_POSSIBLE = {
    "rhel-8": "dnf's library is there for Python 3.6 only, which Ansible no longer supports; use RHEL 9 or 10"
}
"""Systems that were asked for, and why there is no data for them (Python on managed nodes:
https://docs.ansible.com/ansible/latest/reference_appendices/release_and_maintenance.html).
"""


@dataclass(frozen=True)
class Wanted:
    """The parts of a host without versions. `system` is a name of the package data, `choices` the values for its `when`."""

    host: str
    system: str
    arch: str
    manager: str
    repositories: tuple[Mapping[str, Any], ...]
    parts: Mapping[str, Needed]
    choices: Mapping[str, str]
    gpus: int
    branch: str = ""
    family: tuple[str, ...] = ()

    @property
    def locked_as(self) -> str:
        """Its name in a lock."""
        return f"{self.system}-{self.arch}"

    def packages(self) -> list[str]:
        """Return the names of all parts."""
        return [name for needed in self.parts.values() for name in needed.packages]

    def variables(self) -> dict[str, Any]:
        """Return the variables of playbooks/engine/versions.yml and provision.yml."""
        return {
            "nodetune_system": self.system,
            "nodetune_manager": self.manager,
            "nodetune_repositories": [dict(each) for each in self.repositories],
            "nodetune_parts": list(self.parts),
            "nodetune_packages": {part: needed.data() for part, needed in self.parts.items()},
            "nodetune_branch": self.branch,
            "nodetune_family": list(self.family),
            "nodetune_facts": {"gpus": self.gpus, "nvswitch": self.choices["fabric"] != "none"},
            "nodetune_settings": dict(self.choices),
        }


@dataclass(frozen=True)
class VersionDecision:
    """The parts of a host with versions; `held` are the current ones (to which a failed upgrade returns)."""

    wanted: Wanted
    versions: Versions
    held: Versions = field(default_factory=Versions)

    @property
    def host(self) -> str:
        return self.wanted.host

    @property
    def driver(self) -> str:
        """The version of the driver that is to run in the end; empty where this site has none."""
        return self.versions.driver if "driver" in self.wanted.parts else ""

    def changes(self) -> list[tuple[str, str, str]]:
        """Return (package, version now, version wanted) of what will be installed or replaced."""
        wanted = self.versions.packages
        names = [name for name in wanted if name in self.held.packages or name in self.wanted.packages()]
        pairs = ((name, self.held.packages.get(name, ""), wanted[name]) for name in sorted(names))
        return [(name, now, then) for name, now, then in pairs if now != then]

    def variables(self) -> dict[str, Any]:
        """Return the variables of playbooks/engine/provision.yml."""
        return {
            **self.wanted.variables(),
            "nodetune_versions": dict(self.versions.packages),
            "nodetune_driver": self.versions.driver,
        }


def lock_facts(lock: Lock) -> set[str]:
    """Return the facts that show which of the locked packages are installed."""
    return {f"packages.like.{name}" for versions in lock.values() for name in versions.packages}


def wanted(facts: HostFacts, site: Provision) -> Wanted:
    """Decide everything but versions. Raise HostRefusedError."""
    if facts.about.get("uid"):
        raise HostRefusedError("installation needs root", "log in as root, or use --become (-b)")
    seen = ProvisionFacts(facts)
    data, release, arch = _catalogue(seen), seen("host.os", {}), str(seen("host.arch", ""))
    if seen("host.container", False):
        raise HostRefusedError("this is a container", "provision the machine that it runs on")
    if site.guard:
        _require_python(seen("host.pythons", {}))
    gpus = _gpus(seen)
    if "driver" in site.parts and int(site.branch) < data.oldest:
        raise HostRefusedError(
            f"driver branch {site.branch} is not supported on {data.system}", f"use {data.oldest} or newer"
        )
    choices = {"modules": _modules(gpus, site), "build": site.build, "fabric": _fabric(seen, gpus), "rdma": site.rdma}
    kernel = str(seen("host.kernel", ""))
    named = (data.system, f"{release.get('id')}-{release.get('version')}")
    return Wanted(
        facts.host,
        data.system,
        arch,
        data.manager,
        tuple(each.data(data.manager) for each in site.repositories if each.serves(data.manager, named)),
        {part: data.needed(part, choices, site.branch, kernel) for part in _parts(site, choices)},
        choices,
        len(gpus),
        site.branch,
        data.family,
    )


def decide(facts: HostFacts, site: Provision, lock: Lock) -> VersionDecision:
    """Decide what this host gets. Raise HostRefusedError."""
    found = wanted(facts, site)
    seen = ProvisionFacts(facts)
    data = package_data.load(found.system)
    installed = seen("packages.installed", {})
    driver_owner.check(seen, data, installed)
    exporter.check(seen, found.parts, installed)
    gds.check(seen, found.parts, found.choices)
    versions = _locked(found, lock)
    return VersionDecision(found, versions, _held(found, versions, installed))


def _catalogue(seen: ProvisionFacts) -> Catalogue:
    release = seen("host.os", {})
    system = package_data.system_of(release)
    if system not in package_data.known():
        name = text.plain(release.get("name") or system or "this system", 60)
        if system in NOT_POSSIBLE:
            raise HostRefusedError(f"{name} cannot be provisioned", NOT_POSSIBLE[system])
        raise HostRefusedError(f"{name} is not supported", f"supported systems are {', '.join(package_data.known())}")
    data, manager = package_data.load(system), seen("packages.manager", "")
    if manager != data.manager:
        raise HostRefusedError(f"{system} needs {data.manager} and has {manager or 'no package manager'}")
    return data


def _require_python(found: Mapping[str, str]) -> None:
    """Raise HostRefusedError if no Python there can run the guard, the last stage but one."""
    if not any(tuple(map(int, found[path].split("."))) >= OLDEST_PYTHON for path in PYTHONS if path in found):
        newest = f"/usr/bin has {text.names(sorted(found.values()))}" if found else "/usr/bin has none"
        least = ".".join(map(str, OLDEST_PYTHON))
        raise HostRefusedError(
            f"the guard needs Python {least} or newer, and {newest}", "install one, or remove guard from the site file"
        )


def _gpus(seen: ProvisionFacts) -> list[str]:
    """Return the PCI device IDs of the GPUs."""
    devices = seen("pci.devices", {})
    found = [str(devices.get(bdf, {}).get("device", "")) for bdf in seen("pci.gpus", [])]
    if not found:
        raise HostRefusedError("no NVIDIA GPU on the PCI bus", "check lspci -d 10de: and the cabling")
    return found


def _modules(gpus: Iterable[str], site: Provision) -> str:
    """Return open or proprietary. Raise HostRefusedError if the GPUs do not support the site's choice."""
    numbers = [int(each or "0", 16) for each in gpus]
    only_open = [each for each in gpus if int(each or "0", 16) >= BLACKWELL or each in GRACE_HOPPER]
    too_old = [number for number in numbers if number < TURING]
    if too_old and only_open:
        raise HostRefusedError("some GPUs need the open kernel modules, which do not support the others")
    if site.modules == "proprietary" and only_open:
        raise HostRefusedError(f"GPU 10de:{only_open[0]} supports only the open kernel modules", "modules: auto")
    if site.modules == "open" and too_old:
        raise HostRefusedError(
            f"GPU 10de:{too_old[0]:04x} is older than Turing: the open kernel modules do not support it",
            "modules: auto",
        )
    return ("proprietary" if too_old else "open") if site.modules == "auto" else site.modules


def _fabric(seen: ProvisionFacts, gpus: Iterable[str]) -> str:
    """Return none, nvswitch, or nvlink5 (NVSwitch of Blackwell, which also needs NVLSM)."""
    devices = seen("pci.devices", {}).values()
    if any(each.get("class") == NVSWITCH_CLASS and each.get("vendor") == NVIDIA for each in devices):
        return "nvswitch"
    return "nvlink5" if any(each in BLACKWELL_HGX for each in gpus) else "none"


def _parts(site: Provision, choices: Mapping[str, str]) -> list[str]:
    """Return the parts of the site that this host can use."""
    needless = {"fabric-manager": choices["fabric"] == "none", "nccl": bool(site.nccl)}
    return [part for part in site.parts if not needless.get(part)]


def _locked(found: Wanted, lock: Lock) -> Versions:
    """Return the locked versions of this system. Raise HostRefusedError if the lock is incomplete."""
    versions = lock.get(found.locked_as)
    again = f"nodetune lock -i {found.host} adds it"
    if versions is None:
        raise HostRefusedError(f"the lock has no versions for {found.locked_as}", again)
    free = (*OWN_REPOSITORIES, *(("rdma",) if found.choices["rdma"] == "inbox" else ()))
    locked = [part for part in found.parts if part not in free]
    missing = [name for part in locked for name in found.parts[part].packages if name not in versions.packages]
    if missing:
        raise HostRefusedError(f"the lock has no version of {text.names(missing)} for {found.locked_as}", again)
    if "driver" in found.parts and versions.driver.partition(".")[0] != found.branch:
        raise HostRefusedError(
            f"the lock has driver {versions.driver} but the site file requires branch {found.branch}",
            "run nodetune lock again, or change the branch",
        )
    return versions


def _held(found: Wanted, versions: Versions, installed: Mapping[str, Mapping[str, str]]) -> Versions:
    """Return the installed versions of the packages concerned.

    This includes packages that only an older driver had: a downgrade needs them.
    """
    names = {*versions.packages, *found.packages()}
    packages = {
        name: str(about["version"])
        for name, about in installed.items()
        if name in names or driver_owner.like(name, found.family)
    }
    return Versions(_driver_of(found, packages), packages)


def _driver_of(found: Wanted, packages: Mapping[str, str]) -> str:
    """Return the driver's version by its first installed package.

    Names change with the branch, so any package that has the driver's version counts.
    """
    of_driver = found.parts["driver"].packages if "driver" in found.parts else ()
    candidates = (*of_driver, *filter(moves_with_driver, sorted(packages))) if of_driver else ()
    return next((upstream(packages[name]) for name in candidates if name in packages), "")
