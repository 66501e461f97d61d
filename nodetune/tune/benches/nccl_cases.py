"""The cases of NCCL for an objective: the plan for the hosts, and the values of cases from figures. Pure."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nodetune.foundation import text
from nodetune.foundation.request import RequestError, built, limited, one_of, part
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.tune.benches import nccl_tuner
from nodetune.tune.confirm import ALONE, SINGLY, TOGETHER
from nodetune.tune.model import DEFAULT, Case, Setting
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

BY_SIZE = tuple(64 << 2 * n << 10 for n in range(8))
"""Default sizes of rows of the plugin, 64 KiB to 1 GiB: near enough to leave no gap."""

GUARDS = {"bandwidth": (64 << 10, MIB, 16 * MIB), "overlap": (), "latency": (MIB, 64 * MIB)}
"""Sizes that must not become worse."""

SHOWN = {"bandwidth": "overlap", "overlap": "bandwidth", "latency": ""}
"""The objective whose cases are shown as well: what is better alone can be worse with computation."""

SHOWN_SIZES = (64 << 10, MIB, 16 * MIB, 256 * MIB)
"""Sizes alone, where computation decides."""

LAUNCHED, LARGEST_LAUNCHED = (64 << 10, MIB), 4 * MIB
"""Sizes that are also called one by one, and the largest at which the time to launch a call matters."""

DECISIVE = {"bandwidth": (), "overlap": (), "latency": LAUNCHED}
"""Those of LAUNCHED that may refuse a setting without --sizes; the others are shown."""

COLLECTIVES = {
    "bandwidth": ("all_reduce", "all_gather"),
    "overlap": ("all_reduce", "all_gather", "reduce_scatter"),
    "latency": ("all_reduce", "alltoall"),
}
AUTO = "auto"
MAX_COUNTED = 1 << 20
SCREENED, APPLIED = 6, 4
"""Rounds of a block: with communicators of one process, and with processes of their own, which are started again each time."""

SECONDS = 180.0
"""Deadline of a block: NCCL starts in about ten seconds on eight GPUs; a stuck setting uses all of it."""

USED = ("transport", "link", "nvls", "gdr", "algorithm", "protocol", "channels")
"""Keys of a figure that describe the path of the data."""

NO_NCCL_HERE = ("NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE", "NCCL_CONF_FILE", "NCCL_GRAPH_REGISTER")
BARE = "libnccl.so.2"
"""The library that the host's loader finds."""

LATENCY, CALL, STEP = "_latency", "_call", "_step"
SUBJECT = "setting {}"


@dataclass(frozen=True)
class NcclRequest:
    """The request. Empty sizes and collectives mean those of the objective. `weights`: of `all_reduce 65536`; empty: all alike.

    `only`: these variables, even if the site has set them; `plugin`: channels and algorithms by size, as rows of the tuner plugin. `ratio`: the time
    of the products to that of the collectives in a step with computation.
    """

    objective: str = one_of(AUTO, (AUTO, *SIZES))
    sizes: tuple[int, ...] = ()
    collectives: tuple[str, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    ratio: float = limited(1.0, 0.1, 10.0, whole=False)
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
        if self.plugin and self.objective not in (AUTO, "bandwidth"):
            raise RequestError("--plugin chooses by bandwidth: remove --objective")
        if self.plugin and self.only:
            raise RequestError("--plugin and --parameter: keep one")
        both = sorted(set(self.env) & set(self.only))
        if both:
            raise RequestError(f"{both[0]}: --env fixes it, and --parameter tunes it: keep one")

    @property
    def aim(self) -> str:
        """The objective: of training, unless another one is asked for or the plugin, whose rows hold for collectives alone."""
        if self.objective != AUTO:
            return self.objective
        return "bandwidth" if self.plugin else "overlap"

    @property
    def subject(self) -> str:
        """The word for its files."""
        return "nccl-plugin" if self.plugin else "nccl"

    @property
    def aims(self) -> tuple[int, ...]:
        return tuple(sorted(set(self.sizes or (BY_SIZE if self.plugin else SIZES[self.aim]))))

    @property
    def guards(self) -> tuple[int, ...]:
        if self.plugin:  # a row holds for its sizes only
            return ()
        return tuple(size for size in GUARDS[self.aim] if size not in self.aims)

    @property
    def launched(self) -> tuple[int, ...]:
        """The sizes that are also called one by one."""
        asked = {size for size in self.sizes if size <= LARGEST_LAUNCHED}
        return tuple(sorted(asked if self.plugin else {*asked, *LAUNCHED}))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.collectives or COLLECTIVES[self.aim]))

    @property
    def asked(self) -> dict[str, Any]:
        """The request as JSON data, for a later check."""
        several = {"sizes": self.sizes, "collectives": self.collectives, "gpus": self.gpus}
        named = {"env": dict(self.env), "nccl": self.nccl, "weights": dict(self.weights)}
        return {**{name: list(each) for name, each in several.items()}, **named}

    @property
    def shown(self) -> str:
        """The objective whose cases are shown too; empty without one."""
        return "" if self.plugin else SHOWN[self.aim]


@dataclass(frozen=True)
class NcclPath:
    """How a block is measured; see nodetune/measurements/nccl_settings.py for the options of these names."""

    apart: bool
    rounds: int
    seed: int
    amounts: Mapping[str, Sequence[int]]
    fixed: Sequence[str]
    only: Sequence[str] = ()


def measurement(wanted: NcclRequest, settings: Sequence[Setting], way: NcclPath) -> dict[str, Any]:
    """Return the plan item that measures these settings against each other."""
    options: dict[str, Any] = {"settings": [dict(each) for each in settings], "dtype": wanted.dtype, "check": True}
    options |= {"gpus": list(wanted.gpus)} if wanted.gpus else {}
    options |= {"nccl": wanted.nccl} if wanted.nccl else {}
    options |= {"plugin": nccl_tuner.source()} if any(nccl_tuner.rows(each) for each in settings) else {}
    overlap = wanted.aim if wanted.aim == "overlap" else wanted.shown
    if overlap == "overlap":
        own = wanted.aim == "overlap"
        sizes, names = (wanted.aims, wanted.names) if own else (SIZES[overlap], COLLECTIVES[overlap])
        options |= {"overlap_sizes": list(sizes), "overlap_collectives": list(names), "ratio": wanted.ratio}
    if wanted.aim == "latency":
        options |= {"latency_sizes": list(wanted.aims), "latency_collectives": list(wanted.names)}
        options |= {"sizes": list(wanted.guards) or [MIB], "collectives": list(wanted.names)}
    elif wanted.aim == "bandwidth":
        options |= {"sizes": [*wanted.aims, *wanted.guards], "collectives": list(wanted.names)}
    else:
        options |= {"sizes": list(SHOWN_SIZES), "collectives": list(COLLECTIVES["bandwidth"])}
    names = wanted.names if wanted.aim != "overlap" else COLLECTIVES["bandwidth"]
    options |= {"call_sizes": list(wanted.launched), "call_collectives": list(names)}
    return {"name": "nccl_settings", "options": {**options, **vars(way), "only": list(way.only)}, "seconds": SECONDS}


def case_of(figure: Figure, wanted: NcclRequest) -> Case:
    """Return the case of a figure."""
    size = figures.size(figure)
    name = figure.metric.removesuffix(LATENCY).removesuffix(CALL).removesuffix(STEP)
    nominal = _nearest(size, (*wanted.aims, *wanted.guards))
    weight = wanted.weights.get(f"{name} {nominal}", 0.0 if wanted.weights else 1.0)
    if figure.metric.endswith(LATENCY):
        return Case(f"{name} {text.size(size)} latency", "µs", "lower", objective=weight > 0, weight=weight)
    overlap = wanted.aim == "overlap"
    if figure.metric.endswith(CALL):
        asked = _nearest(size, (*wanted.sizes, *wanted.launched)) in (wanted.sizes or DECISIVE[wanted.aim])
        named = f"{name} {text.size(size)} {SINGLY}"
        return Case(named, "µs", "lower", objective=False, judged=asked and not overlap, where=SINGLY, coarse=True)
    if figure.metric.endswith(STEP):
        named = f"{name} {text.size(size)} and GEMM"
        aim = overlap and weight > 0
        return Case(named, "ms", "lower", objective=aim, judged=overlap, where=TOGETHER, weight=weight if aim else 1.0)
    aim = wanted.aim == "bandwidth" and nominal in wanted.aims and weight > 0
    where, weight = "" if wanted.aim == "latency" else ALONE, weight if aim else 1.0
    return Case(f"{name} {text.size(size)}", "GB/s", "higher", aim, judged=not overlap, where=where, weight=weight)


def _nearest(size: int, sizes: Sequence[int]) -> int:
    """Return the requested size: the actual size is rounded down to whole shares of the ranks."""
    return min(sizes, key=lambda each: abs(each - size))


def count(value: Any, otherwise: int) -> int:
    """Return a number from a host, or the default if it is not a number."""
    return value if type(value) is int and 0 < value < MAX_COUNTED else otherwise


def key(figure: Figure) -> str:
    """Return the name of its case in the measurement."""
    return f"{figure.metric} {figures.size(figure)}"


def amounts(found: Iterable[Figure]) -> dict[str, list[int]]:
    """Return the work of each case as the default did it, so that all settings do the same."""
    known = {key(each): each.about.get("amounts") for each in found}
    return {
        name: given
        for name, given in known.items()
        if isinstance(given, list)
        and len(given) == 2
        and all(type(each) is int and 0 <= each < MAX_COUNTED for each in given)
        and given[0]
    }


def values(
    found: Sequence[Figure], settings: Sequence[Setting], wanted: NcclRequest
) -> dict[Setting, dict[str, float]]:
    """Return the value of each case for each setting: what the default has, times the median of the ratios of the rounds."""
    samples = {(each.subject, case_of(each, wanted).id): each.runs[0] for each in found}
    names = {SUBJECT.format(number): setting for number, setting in enumerate(settings)}
    first = SUBJECT.format(settings.index(DEFAULT) if DEFAULT in settings else 0)
    result: dict[Setting, dict[str, float]] = {setting: {} for setting in settings}
    for (subject, case), runs in samples.items():
        control = samples.get((first, case), runs)
        ratios = [value / base for value, base in zip(runs, control, strict=False) if base > 0]
        if subject in names and ratios:
            result[names[subject]][case] = statistics.median(control) * statistics.median(ratios)
    return result


def bursts(found: Sequence[Figure]) -> list[str]:
    """Say why calls were not recorded in a CUDA graph, if so."""
    why = sorted({text.plain(each.about["launched"]) for each in found if each.about.get("launched")})
    return [f"calls are launched one after another, which resolves small sizes less: {each}" for each in why[:1]]


def way(figure: Figure) -> dict[str, Any]:
    about = figure.about
    return {"transport": str(about.get("transport") or ""), **{key: about.get(key) for key in USED[1:]}}


def settings(found: Sequence[Figure]) -> dict[str, str]:
    """Return what NCCL reports to have read from the environment or a conf file."""
    read: dict[str, str] = {}
    for each in found:
        given = each.about.get("settings")
        read |= {str(name): str(value) for name, value in given.items()} if isinstance(given, Mapping) else {}
    return {name: value for name, value in read.items() if name not in NO_NCCL_HERE}


def installed(library: str, version: str, hosts: Sequence[Any]) -> dict[str, str] | None:
    """Return the installed NCCL that was measured, as the fact of all hosts names it; None for another one, such as a wheel's."""
    found = []
    for each in hosts:
        known = [one for one in each or () if isinstance(one, Mapping) and one.get("version") == version]
        found.append(
            next(
                (dict(one) for one in known if library == one.get("path") or (library == BARE and len(each) == 1)), None
            )
        )
    return found[0] if found and all(each == found[0] for each in found) else None
