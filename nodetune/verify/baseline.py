"""A site's own figures: saved from its good nodes in a file and compared only with similar nodes."""

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodetune.facts.machine import Machine
from nodetune.foundation import by_key, json_document, text
from nodetune.foundation.json_document import DocumentError
from nodetune.statistics import outliers
from nodetune.verify import catalogue, figures, reference
from nodetune.verify.catalogue import takes_two_hosts
from nodetune.verify.model import Expectation, Figure

SCHEMA = "nodetune.baseline/1"
LARGEST = 64 << 20
WRITE = "write one with nodetune verify --save-baseline FILE"


def subject(figure: Figure, machine: Machine) -> str:
    """Return the kind of a subject: GPU2 is like any other GPU, equal instances alike, all pairs behind one switch.

    Ports of adapters are alike, too. NUMA nodes and directly linked pairs of GPUs keep their numbers. All hosts are of one kind.
    """
    if re.fullmatch(r"GPU\d+", figure.subject) or re.fullmatch(r"cpu\d+", figure.subject):
        return figure.subject.rstrip("0123456789")
    instance = re.fullmatch(r"GPU\d+ (\S+) #\d+", figure.subject)
    if instance:
        return f"instance {instance[1]}"
    pair = re.fullmatch(r"GPU\d+([→↔])GPU\d+", figure.subject)
    if pair:
        return f"GPU{pair[1]}GPU" if machine.fabric == "nvswitch" else figure.subject
    if figure.measurement == "nic_loopback":
        return "port"
    if takes_two_hosts(figure.measurement):
        return "host→host"
    return figure.subject


@dataclass(frozen=True)
class Kept:
    """One line of a baseline: `typical` value and robust `spread` in the unit, over `count` figures."""

    typical: float
    spread: float
    count: int
    hosts: int
    unit: str


class Baseline:
    """Figures by their conditions."""

    def __init__(self, name: str, kept: Mapping[str, Kept]) -> None:
        self.name = name
        self._kept = kept

    def expectation(self, figure: Figure, machine: Machine) -> Expectation | None:
        """Return the expectation, or None if the baseline has no such figure for such a machine."""
        found = self._kept.get(_key(figure, machine))
        if found is None or found.unit != figure.unit:
            return None
        share = reference.tolerance(figure.measurement, figure.metric, "baseline")
        bound = outliers.worst(found.typical, found.spread, share, figure.sign)
        of = f"{text.count(found.count, 'figure')} of {text.count(found.hosts, 'host')}"
        told = f"baseline {self.name}: {found.typical:.4g}, {of}"
        return Expectation("baseline", bound, told, found.typical)


def _key(figure: Figure, machine: Machine) -> str:
    of_host = catalogue.of(figure.measurement).scope in ("host", "pair")
    wanted = ("cpu", "cpus", "numa_nodes") if of_host else ("gpu", "gpus", "fabric")
    parts = {
        "measurement": figure.measurement,
        "metric": figure.metric,
        "subject": subject(figure, machine),
        "on": {name: machine.like[name] for name in wanted},
        "conditions": figures.conditions(figure),
    }
    return json.dumps(parts, sort_keys=True)


def document(measured: Iterable[tuple[Machine, Figure]]) -> list[dict[str, Any]]:
    """Return the `figures` of a baseline file: all figures, with hosts of one kind together."""
    found = by_key((_key(figure, machine), figure) for machine, figure in measured)
    return [{**json.loads(key), **_summary(same)} for key, same in sorted(found.items())]


def _summary(same: list[Figure]) -> dict[str, Any]:
    values = [value for figure in same for value in figure.by_run]
    typical, spread = outliers.robust(values)
    hosts = len({figure.host for figure in same})
    return {"typical": typical, "spread": spread, "count": len(values), "hosts": hosts, "unit": same[0].unit}


def read(path: Path) -> Baseline:
    """Read a baseline. Raise DocumentError or OSError."""
    data = json_document.read(path, SCHEMA, LARGEST, WRITE)
    if not isinstance(data.get("figures"), list):
        raise DocumentError(f"{path}: has no figures: {WRITE}")
    return Baseline(path.name, dict(_line(path, number, each) for number, each in enumerate(data["figures"])))


def _line(path: Path, number: int, data: Any) -> tuple[str, Kept]:
    names = ("measurement", "metric", "subject", "on", "conditions")
    try:
        key = json.dumps({name: data[name] for name in names}, sort_keys=True)
        numbers = [float(data[name]) for name in ("typical", "spread")]
        kept = Kept(numbers[0], numbers[1], int(data["count"]), int(data["hosts"]), text.plain(data["unit"]))
    except (KeyError, TypeError, ValueError, OverflowError) as problem:
        raise DocumentError(
            f"{path}: figure {number + 1} is not understood ({problem!r}): write the file again"
        ) from None
    if not all(math.isfinite(each) for each in numbers):
        raise DocumentError(f"{path}: figure {number + 1} has no number: write the file again")
    return key, kept
