"""The constants in the file of each measurement. The files are parsed but not run: they are code for hosts."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

from nodetune.remote import payload

TOLERANCE = {"peers": 5, "baseline": 5, "drift": 1}
"""For a measurement without its own. SuperBench's rules treat 5 % below a baseline as a fault, and 10 % for the latency of a
kernel launch (microsoft/superbench-results v0.4.0 rule.yaml). Measurements widen this where real nodes are wider: the
eight GPUs of one H200 node gave bf16 GEMM of 739 to 805 TFLOP/s and H2D of 53 to 55 GB/s; six runs on two H200s gave
copies both ways at once of 88 to 98 GB/s, and kernel launches of 10.8 to 14.6 µs."""


@dataclass(frozen=True)
class MeasurementSpec:
    """The constants of a measurement's file, in lower case. See nodetune/measurements/__init__.py for what each means."""

    name: str
    about: str = ""
    seconds: float = 20.0
    scope: str = "host"
    gpus: int = 1
    order: int = 1000
    suites: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tolerance: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    suspect: str = "{subject}"
    size_matters: bool = False
    sizes: tuple[int, ...] = ()
    all_pairs_seconds: float | None = None
    finds_others: bool = False
    takes_folder: bool = False
    by_name: bool = False
    shares_cuda: bool = False

    @property
    def runs(self) -> list[str]:
        """The suites and options that add it to a run."""
        disk = ["--disk"] if self.takes_folder else []
        added = [] if self.by_name else [*disk, *(["--pairs"] if self.scope == "pair" else [])]
        return [*self.suites, *added] or [" ".join([f"--only {self.name}", *disk])]

    def item(self, suite: str) -> dict[str, Any]:
        """Return the measurement as one line of a plan, with the options and the deadline of that suite."""
        return {"name": self.name, "options": {}, **self.suites.get(suite, {})}

    def tolerance_of(self, metric: str) -> Mapping[str, float]:
        """Return the tolerance for figures of that metric in per cent."""
        return self.tolerance.get(metric) or self.tolerance.get("") or TOLERANCE


def measurements() -> Mapping[str, MeasurementSpec]:
    """Return all measurements by name, in the order of running: the files that define `measure`."""
    return _read(payload.MEASUREMENTS)


def of(name: str) -> MeasurementSpec:
    """Return one measurement; the defaults for a name that exists only in older results."""
    return measurements().get(name) or MeasurementSpec(name)


def takes_two_hosts(name: str) -> bool:
    """Return whether it measures pairs of hosts, whose subjects name both."""
    return of(name).scope == "pair"


def of_folder() -> tuple[str, ...]:
    """Return the names of the measurements that need a folder, in order."""
    return tuple(name for name, each in measurements().items() if each.takes_folder)


def of_scope(*scopes: str) -> tuple[str, ...]:
    """Return the names of the measurements with one of these scopes, in order."""
    return tuple(name for name, each in measurements().items() if each.scope in scopes)


@cache
def _read(folder: Path) -> Mapping[str, MeasurementSpec]:
    sources = {path.stem: path.read_text("utf-8") for path in sorted(folder.glob("[a-z]*.py"))}
    found = [_measurement(name, text) for name, text in sources.items() if "\ndef measure(" in text]
    return {each.name: each for each in sorted(found, key=lambda each: (each.order, each.name))}


def _measurement(name: str, text: str) -> MeasurementSpec:
    known = {each.name.upper() for each in fields(MeasurementSpec)} - {"NAME", "ABOUT"}
    tree = ast.parse(text)
    about = (ast.get_docstring(tree) or "").partition("\n")[0].partition(":")[0].rstrip(".")
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    constants = {node.targets[0].id: node.value for node in assigned if isinstance(node.targets[0], ast.Name)}
    return MeasurementSpec(
        name, about, **{key.lower(): _literal(name, key, constants[key]) for key in known & set(constants)}
    )


def _literal(name: str, key: str, node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise ValueError(f"{name}.py: {key} must be a plain literal") from None
