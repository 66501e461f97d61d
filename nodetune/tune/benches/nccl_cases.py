"""The cases of NCCL for an objective: the plan for the hosts, and the values of cases from figures. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nodetune.foundation import text
from nodetune.foundation.request import RequestError, built, one_of, part
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.measurements import nccl_ops
from nodetune.tune.model import Case
from nodetune.tune.request import StudyRequest
from nodetune.verify import figures
from nodetune.verify.model import Figure

MIB = 1 << 20
SIZES = {
    "bandwidth": (256 * MIB, 1024 * MIB),
    "overlap": (64 * MIB, 256 * MIB),
    "latency": (8, 512, 4096, 65536),
}
"""Default sizes of an objective in bytes."""

GUARDS = {"bandwidth": (64 << 10, MIB, 16 * MIB), "overlap": (), "latency": (MIB, 64 * MIB)}
"""Sizes that must not become worse."""

COLLECTIVES = {
    "bandwidth": ("all_reduce", "all_gather"),
    "overlap": ("all_reduce",),
    "latency": ("all_reduce", "alltoall"),
}
MOST_COUNTED = 1 << 20
REPEATS, ITERATIONS = 3, 20
SECONDS = 180.0
"""Deadline of one trial: NCCL starts in about ten seconds on eight GPUs; a stuck setting uses all of it."""


@dataclass(frozen=True)
class NcclRequest:
    """The request. Empty sizes and collectives mean those of the objective.

    `only`: these variables, even if the site has set them; `plugin`: algorithms, as rows of the tuner plugin.
    """

    objective: str = one_of("bandwidth", SIZES)
    sizes: tuple[int, ...] = ()
    collectives: tuple[str, ...] = ()
    gpus: tuple[int, ...] = ()
    nccl: str = ""
    dtype: str = one_of("float32", ("float32", "bfloat16"))
    env: Mapping[str, str] = field(default_factory=dict)
    only: tuple[str, ...] = ()
    plugin: Path | None = None
    allow_busy: bool = False
    multi_node: bool = False
    connection: ConnectionOptions = built()
    study: StudyRequest = part(StudyRequest)

    def __post_init__(self) -> None:
        """Raise RequestError."""
        if self.plugin and self.objective != "bandwidth":
            raise RequestError("--plugin chooses algorithms by their bandwidth: remove --objective")
        if self.plugin and self.only:
            raise RequestError("--plugin and --parameter: keep one")
        both = sorted(set(self.env) & set(self.only))
        if both:
            raise RequestError(f"{both[0]}: --env fixes it, and --parameter tunes it: keep one")

    @property
    def subject(self) -> str:
        """The word for its files."""
        return "nccl-plugin" if self.plugin else "nccl"

    @property
    def aims(self) -> tuple[int, ...]:
        return tuple(sorted(set(self.sizes or SIZES[self.objective])))

    @property
    def guards(self) -> tuple[int, ...]:
        if self.plugin:  # a row holds for its sizes only
            return ()
        return tuple(size for size in GUARDS[self.objective] if size not in self.aims)

    @property
    def names(self) -> tuple[str, ...]:
        usual = ("all_reduce",) if self.plugin else COLLECTIVES[self.objective]
        return tuple(dict.fromkeys(self.collectives or usual))


def measurement(wanted: NcclRequest) -> dict[str, Any]:
    """Return the plan item that measures all cases."""
    options: dict[str, Any] = {"collectives": list(wanted.names), "dtype": wanted.dtype, "check": True}
    options |= {"gpus": list(wanted.gpus)} if wanted.gpus else {}
    options |= {"nccl": wanted.nccl} if wanted.nccl else {}
    options |= {"repeats": REPEATS, "iterations": ITERATIONS, "in_place": False}
    if wanted.objective == "overlap":
        return {"name": "nccl_overlap", "options": {**options, "sizes": list(wanted.aims)}, "seconds": SECONDS}
    if wanted.objective == "latency":
        options |= {"latency_collectives": list(wanted.names), "latency_sizes": list(wanted.aims)}
        return {"name": "nccl", "options": {**options, "sizes": list(wanted.guards) or [MIB]}, "seconds": SECONDS}
    return {"name": "nccl", "options": {**options, "sizes": [*wanted.aims, *wanted.guards]}, "seconds": SECONDS}


def of(found: Iterable[Figure], wanted: NcclRequest) -> list[tuple[Case, Figure]]:
    """Return the cases that are possible according to the default measurement, each with its figure, in order."""
    return [(_case(each, wanted), each) for each in found if not each.metric.startswith("gemm_with_")]


def _case(figure: Figure, wanted: NcclRequest) -> Case:
    size = figures.size(figure)
    name = figure.metric.removesuffix("_latency").removesuffix("_with_gemm")
    if figure.metric.endswith("_latency"):
        return Case(f"{name} {text.size(size)} latency", "µs", "lower")
    if figure.metric.endswith("_with_gemm"):
        return Case(f"{name} {text.size(size)} and GEMM", "ms", "lower")
    aim = wanted.objective == "bandwidth" and _nearest(size, (*wanted.aims, *wanted.guards)) in wanted.aims
    return Case(f"{name} {text.size(size)}", "GB/s", "higher", objective=aim)


def _nearest(size: int, sizes: Sequence[int]) -> int:
    """Return the requested size: the actual size is rounded down to whole shares of the ranks."""
    return min(sizes, key=lambda each: abs(each - size))


@dataclass(frozen=True)
class Step:
    """A fixed amount of work: one collective, and computation that takes about as long with the defaults.

    The amounts are rounded so that a resumed tuning measures the same work.

    `gigabytes` as busbw counts them, `operations` in 10¹² of each GPU.
    """

    gigabytes: float
    operations: float


def steps(found: Sequence[Figure]) -> dict[tuple[str, int], Step]:
    """Return the work of each case of the overlap objective, from the default measurement."""
    made = {}
    for moved, computed in pairs(found):
        name, ranks = moved.metric.removesuffix("_with_gemm"), count(moved.about.get("gpus"), 2)
        gigabytes = figures.size(moved) / 1e9 * nccl_ops.factor(name, ranks)
        ratio = float(f"{_alone(computed) / _alone(moved):.0e}")
        made[moved.metric, figures.size(moved)] = Step(gigabytes, ratio * gigabytes)
    return made


def pairs(found: Sequence[Figure]) -> Iterator[tuple[Figure, Figure]]:
    """Yield the two figures of each collective with a GEMM: data moved and operations computed."""
    computed = {(each.metric, figures.size(each)): each for each in found if each.metric.startswith("gemm_with_")}
    for each in found:
        other = computed.get((f"gemm_with_{each.metric.removesuffix('_with_gemm')}", figures.size(each)))
        if each.metric.endswith("_with_gemm") and other and each.value > 0 and other.value > 0:
            yield each, other


def count(value: Any, otherwise: int) -> int:
    """Return a number from a host, or the default if it is not a number."""
    return value if type(value) is int and 0 < value < MOST_COUNTED else otherwise


def _alone(figure: Figure) -> float:
    found = figure.about.get("alone")
    return float(found) if isinstance(found, int | float) and found > 0 else figure.value


def milliseconds(step: Step, moved: Figure, computed: Figure) -> float:
    """Return the time of a step in which both start together: when one ends, the other has the GPU alone."""
    moving, computing = step.gigabytes / moved.value, step.operations / computed.value
    first = min(moving, computing)
    if moving > computing:
        return 1e3 * (first + (step.gigabytes - first * moved.value) / _alone(moved))
    return 1e3 * (first + (step.operations - first * computed.value) / _alone(computed))


def values(found: Sequence[Figure], wanted: NcclRequest, work: Mapping[tuple[str, int], Step]) -> dict[str, float]:
    """Return the value of each case that was measured."""
    both = {(moved.metric, figures.size(moved)): computed for moved, computed in pairs(found)}
    values: dict[str, float] = {}
    for case, figure in of(found, wanted):
        key = figure.metric, figures.size(figure)
        if not figure.metric.endswith("_with_gemm"):
            values[case.id] = figure.value
        elif key in both and key in work:
            values[case.id] = milliseconds(work[key], figure, both[key])
    return values
