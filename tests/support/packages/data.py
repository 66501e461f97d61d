"""What is in the repositories: debian-12.yml and rhel-9.yml, one package for each version of each entry."""

from dataclasses import dataclass, field
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent
DRIVERS = ("580.159.04", "580.178.04", "580.199.01")
BAD = "580.199.01"
"""The driver with which everything takes twice as long."""
STATES = {
    "first": (DRIVERS[:1], DRIVERS[:1]),
    "second": (DRIVERS[:2], DRIVERS[:2]),
    "bad": (DRIVERS, DRIVERS),
    "lagging": (DRIVERS[:2], DRIVERS[:1]),
}
"""Folder of a repository → versions of the driver in it, and of what is made apart from it, as Fabric Manager."""
NVIDIA = "nvidia"


@dataclass(frozen=True, eq=False)
class Package:
    name: str
    version: str
    source: str
    architecture: str
    maintainer: str
    repository: str
    driver: str = ""
    """The driver's version where each has a package of its own, else empty."""
    lags: bool = False
    vendor: str = ""
    epoch: int = 0
    noarch: bool = False
    depends: str = ""
    recommends: str = ""
    provides: str = ""
    conflicts: str = ""
    replaces: str = ""
    files: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    empty: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    streams: tuple[str, ...] = ()
    modules: str = ""
    """The flavour of the kernel modules that it brings: open or proprietary."""
    postinst: str = ""
    prerm: str = ""

    def stands_in(self, state: str) -> bool:
        drivers, lagging = STATES[state]
        return self.repository == NVIDIA and (not self.driver or self.driver in (lagging if self.lags else drivers))


def packages(system: str, kernel: str = "") -> list[Package]:
    """All packages of debian-12 or rhel-9. `kernel`: that of the machines; without it nothing stands there for one."""
    told = yaml.safe_load((HERE / f"{system}.yml").read_text())
    found = []
    for name, given in told["packages"].items():
        entry = {**told["defaults"], **given}
        if "{kernel}" in name and not kernel:
            continue
        for driver in DRIVERS if "{driver}" in entry["version"] else ("",):
            values = {**told["folders"], "driver": driver, "branch": driver.partition(".")[0], "kernel": kernel}
            found.append(_package(name, entry, values))
    return found


def _package(name: str, entry: dict, values: dict[str, str]) -> Package:
    values = {**values, "v": _filled(entry["version"], values)}
    units = {f"{values['units']}/{unit}": unit for unit in entry.get("units", ())}
    entry = {**entry, "files": {**entry.get("files", {}), **units}, "driver": values["driver"]}
    return Package(name=_filled(name.partition("/")[0], values), **_filled(entry, values))


def _filled(told, values: dict[str, str]):
    """`told` with {key} replaced in all its texts; lists become tuples."""
    if isinstance(told, dict):
        return {_filled(key, values): _filled(each, values) for key, each in told.items()}
    if isinstance(told, list):
        return tuple(_filled(each, values) for each in told)
    if isinstance(told, str):
        for key, value in values.items():
            told = told.replace(f"{{{key}}}", value)
    return told
