"""The shipped tables (nodetune/verify/expected/*.yml): the limits of GPUs and published figures."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from nodetune.facts.machine import Machine
from nodetune.foundation import paths
from nodetune.foundation.yaml_lines import LocatedYaml, load
from nodetune.verify import catalogue, figures
from nodetune.verify.model import Expectation, Figure, Limit

NO_SOURCES = ("chips",)


@dataclass(frozen=True)
class Entry:
    """One shipped figure. Members that are None (or empty) match anything; all others must match.

    `size_from`: bytes; bus bandwidth does not fall with size, so a floor holds from its size on. `at_least` in `unit`;
    `measured` times the file's factor, `of_limit` of what the hardware allows, or what the hardware states under the
    first known name of `of_stated` times the factor are alternatives. Above `limit_to`, `of_limit` does not hold.
    `drive`: parts of a model's name, of which one is in that of the drive; its link bounds `measured`.
    `proves` False: so loose that below it something is wrong, but above it nothing is proven. `gates` False: shown only.
    """

    measurement: str
    unit: str
    metric: str = ""
    gpu: tuple[str, ...] = ()
    drive: tuple[str, ...] = ()
    form: str = ""
    gpus: int | None = None
    gpus_from: int = 0
    fabric: str = ""
    nodes: int = 1
    nvls: bool | None = None
    nccl: str = ""
    size_from: int = 0
    local: bool | None = None
    virtual: bool | None = None
    at_least: float | None = None
    measured: float | None = None
    of_limit: float | None = None
    limit_to: float = math.inf
    of_stated: tuple[str, ...] = ()
    proves: bool = True
    gates: bool = True
    note: str = ""
    file: str = ""
    source: str = ""
    derivation: str = ""
    factor: float = 1.0

    def bound(self, figure: Figure, limit: Limit | None) -> float | None:
        """Return the least value that passes, or None if it depends on something unknown."""
        if self.at_least is not None:
            return self.at_least
        if self.measured is not None:
            most = limit.value if self.drive and limit else math.inf
            return min(self.measured, most) * self.factor
        if self.of_stated:
            stated = [figure.about[name] for name in self.of_stated if figure.about.get(name)]
            return _number(stated[0]) * self.factor if stated else None
        return self.of_limit * limit.value if self.of_limit and limit and limit.value <= self.limit_to else None

    def fits(self, figure: Figure, machine: Machine) -> bool:
        """Return whether it applies to such a figure on such a machine."""
        about = figure.about
        gpus, size = about.get("gpus", machine.gpus), about.get("size", 0)
        wanted = (
            (self.measurement, figure.measurement),
            (self.metric or figure.metric, figure.metric),
            (self.unit, figure.unit),
            (self.fabric or machine.fabric, machine.fabric),
            (gpus if self.gpus is None else self.gpus, gpus),
            (self.nvls if self.nvls is not None else about.get("nvls"), about.get("nvls")),
            (self.nccl or None, figures.minor(str(about.get("nccl"))) if self.nccl else None),
            ("median", about.get("statistic") or "median"),
            (self.local if self.local is not None else about.get("local"), about.get("local")),
            (self.virtual if self.virtual is not None else machine.virtual, machine.virtual),
            (self.nodes, about.get("nodes", 1)),
        )
        enough = _number(gpus) >= self.gpus_from and _number(size) >= self.size_from
        made_for = not self.gpu or machine.model in self.gpu
        made_for &= not self.drive or any(part in str(about.get("drive")) for part in self.drive)
        return made_for and enough and all(mine == theirs for mine, theirs in wanted)

    def decides(self, met: bool) -> bool:
        """Return whether it decides the verdict on a figure."""
        return self.gates and (self.proves or not met)


def _number(found: Any) -> float:
    return found if isinstance(found, int | float) else 0


@cache
def _file(name: str) -> LocatedYaml:
    return load(paths.bundled("verify/expected") / f"{name}.yml")


@cache
def entries() -> tuple[Entry, ...]:
    """Return all shipped figures. Raise yaml_lines.FileError for an invalid table."""
    names = sorted(path.stem for path in paths.bundled("verify/expected").glob("*.yml"))
    return tuple(entry for name in names if name not in NO_SOURCES for entry in _entries(name))


def _entries(name: str) -> Iterator[Entry]:
    table = _file(name)
    known = {each.name for each in fields(Entry)} - {"file"}
    common = {"file": name, **{key: table.data[key] for key in ("source", "derivation", "factor") if key in table.data}}
    for number, given in enumerate(table.data["figures"]):
        for key in given:
            if key not in known:
                table.fail(f"{key!r} is not one of {', '.join(sorted(known))}", "figures", number, key)
        merged = {**common, **table.data["given"], **given}
        yield Entry(**{**merged, **{key: tuple(merged.get(key, ())) for key in ("gpu", "drive", "of_stated")}})


def shipped(figure: Figure, machine: Machine, limit: Limit | None) -> tuple[Expectation, Entry] | None:
    """Return the shipped figure for such a case. Of several, the strictest of the most conclusive.

    If the same source has a figure for several sizes, the nearest size below is the strictest.
    """
    found = [(entry, entry.bound(figure, limit)) for entry in entries() if entry.fits(figure, machine)]
    known = [(entry, bound) for entry, bound in found if bound is not None]
    if not known:
        return None
    entry, bound = max(
        known, key=lambda each: (each[0].gates, each[0].proves, bool(each[0].gpu), figure.sign * each[1])
    )
    because = "; ".join(text for text in (entry.derivation, entry.note) if text)
    return Expectation("shipped", bound, entry.source, entry.measured, because), entry


@cache
def _chips() -> dict[str, Mapping[str, Any]]:
    return {chip["name"]: chip for chip in _file("chips").data["chips"]}


def chip(model: str) -> Mapping[str, Any]:
    """Return the limits of a GPU model; an empty mapping if it is not in the table."""
    return _chips().get(model, {})


def pcie_lane(generation: int) -> float | None:
    """Return the GB/s one way of one PCIe lane."""
    found = _file("chips").data["pcie_lane"].get(generation)
    return float(found) if found else None


def tolerance(measurement: str, metric: str, what: str) -> float:
    """Return the tolerance of such figures for peers, a baseline or drift between days, as a fraction."""
    return float(catalogue.of(measurement).tolerance_of(metric)[what]) / 100
