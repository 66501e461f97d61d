"""Tune GPUs: a ladder of locked clocks or power limits; each rung measures products, or reads of memory, with their energy."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean, median
from typing import Any

from nodetune.api.model import Absent, HostFacts
from nodetune.audit import gpu_users
from nodetune.foundation.request import built, limited, one_of, part
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.hosts.target import Target
from nodetune.statistics.thresholds import GPU_TRIAL_NOISE
from nodetune.tune.benches import runs
from nodetune.tune.benches.runs import TrialFigures
from nodetune.tune.model import DEFAULT, BenchError, Case, OneByOne, Parameter, Setting, Trial
from nodetune.tune.request import StudyRequest
from nodetune.verify import disturbance
from nodetune.verify import run as verify_run
from nodetune.verify.run import Measure

LADDERS = {"clocks": "locked_clocks", "power": "power_limit"}
CHECKS = {"locked_clocks": "gpu-sm-clock-unwanted", "power_limit": "gpu-power-limit-unwanted"}
UNITS = {"locked_clocks": "MHz", "power_limit": "W"}
LOWEST = 0.5
"""The lowest rung as a fraction of the highest clock or default power limit: below it, work takes twice as long."""

MAX_MILLIWATTS = 100_000_000
HELD_BY_LOCK = "applications_clocks_setting"
"""NVML's name for locked clocks too."""


@dataclass(frozen=True)
class Work:
    """One load of gpu_energy: the metrics of its energy, power and rate, and their units."""

    load: str
    energy: str
    joules_for: str
    power: str
    rate: str
    a_second: str

    @property
    def slowest(self) -> str:
        return f"{self.rate} of the slowest GPU"


WORKS = {
    "compute": Work("products", "energy", "J/TFLOP", "power", "bf16", "TFLOP/s"),
    "memory": Work("memory", "memory_energy", "J/TB", "memory_power", "memory", "GB/s"),
}

NVML = "https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceCommands.html"
SLURM = "services.processes"
NAMES, CLOCKS = "gpu.names", "gpu.supported_clocks"
LIMITS, DEFAULT_LIMIT = "gpu.power_management_limit_constraints", "gpu.power_management_default_limit"
FACTS = {*verify_run.FACTS, *runs.XIDS, SLURM, NAMES, CLOCKS, LIMITS, DEFAULT_LIMIT, "gpu.driver_version"}


@dataclass(frozen=True)
class GpuRequest:
    """The request. `work`: what the rung is for; `slowdown` is a fraction; `seconds`, `repeats`: of the measurements of a trial."""

    allow_gpu_settings: bool = False
    assume_drained: bool = False
    ladder: str = one_of("clocks", LADDERS)
    work: str = one_of("compute", WORKS)
    rungs: int = limited(6, 2, 20)
    slowdown: float = 0.03
    seconds: float = 3.0
    repeats: int = 2
    connection: ConnectionOptions = built()
    study: StudyRequest = part(StudyRequest)

    @property
    def setting(self) -> str:
        return LADDERS[self.ladder]


class GpuBench(OneByOne):
    """All GPUs of one host. Raise BenchError if nothing may be changed or measured."""

    subject = "gpu"

    def __init__(
        self,
        target: Target,
        wanted: GpuRequest,
        connection: ConnectionOptions,
        how: Measure,
        facts: Callable[..., dict[str, HostFacts | str]] = runs.facts,
    ) -> None:
        if not wanted.allow_gpu_settings:
            raise BenchError("a ladder changes GPU settings while it runs: allow this with --allow-gpu-settings")
        self._target, self.wanted, self._connection, self._how = target, wanted, connection, how
        self._facts = _free(target.name, facts([target], FACTS, connection)[target.name], wanted)
        self.model = self._model()
        self._choices = ladder(self._facts, wanted)
        self._work = WORKS[wanted.work]
        self._others = tuple(each for each in WORKS.values() if each != self._work)
        self._rates: list[float] = []
        self._gpus: frozenset[str] = frozenset()
        self._look()

    def _look(self) -> None:
        """Measure the default once: which GPUs count energy, and their speed. Raise BenchError if none counts it."""
        came = self._measured(DEFAULT, tuple(WORKS.values()))
        energy = _of(came, self._work.energy)
        if came.wrong or came.failure or not energy:
            why = came.wrong or came.failure or came.skipped or "the energy was not measured"
            raise BenchError(runs.of_host(self._target.name, why))
        self._gpus = frozenset(energy)
        values = self._values(came)
        self._others = tuple(each for each in self._others if {each.energy, each.slowest} <= values.keys())
        if not came.disturbance:
            self._too_slow(DEFAULT, values)

    def _model(self) -> str:
        names = _value(self._facts, NAMES, "the GPUs' models")
        if len(set(names.values())) != 1:
            raise BenchError(f"{self._target.name} has several GPU models: a ladder needs a single model")
        return str(next(iter(names.values())))

    @property
    def parameters(self) -> Sequence[Parameter]:
        name = self.wanted.setting
        return (Parameter(name, self._choices, NVML, UNITS[name]),)

    @property
    def cases(self) -> Sequence[Case]:
        """The work that the rung is for decides; the other one is shown."""
        work, slowdown = self._work, self.wanted.slowdown
        shown = (
            Case(name, unit, better, False, slowdown, judged=False)
            for other in self._others
            for name, unit, better in (
                (other.energy, other.joules_for, "lower"),
                (other.slowest, other.a_second, "higher"),
            )
        )
        return (
            Case(work.energy, work.joules_for, "lower"),
            Case(work.slowest, work.a_second, "higher", False, slowdown),
            *shown,
        )

    def allowed(self, setting: Setting) -> bool:
        """Return whether the GPUs support these values."""
        return all(name == self.wanted.setting and value in self._choices for name, value in setting)

    def measure(self, setting: Setting, cases: Sequence[Case]) -> Trial:
        """Measure one rung. The host restores the previous settings, even if killed; if it cannot, tuning ends."""
        asked = {case.id for case in cases}
        works = tuple(each for each in (self._work, *self._others) if each.energy in asked)
        began, came = time.monotonic(), self._measured(setting, works)
        values = self._values(came)
        about = {"tflops": values.get(WORKS["compute"].slowest), "watts": _watts(came, self._work.power)}
        trial = runs.trial(setting, cases, came, values)
        trial = replace(trial, about=about, seconds=round(time.monotonic() - began, 3))
        too_slow = self._too_slow(setting, values) if trial.counts else ""
        return replace(trial, values={}, banned=too_slow) if too_slow else trial

    def _measured(self, setting: Setting, works: Sequence[Work]) -> TrialFigures:
        """Measure. Clocks held down by our own lock are the subject of the rung and not a disturbance."""
        came = runs.measured([self._target], [self._item(setting, works)], {}, self._how, self._connection)
        if "locked_clocks" in dict(setting):
            told = {key: {**each, "gpus": _without_lock(each.get("gpus"))} for key, each in came.others.items()}
            came.found = [disturbance.marked(each, told) for each in came.found]
        return came

    def _item(self, setting: Setting, works: Sequence[Work]) -> dict[str, Any]:
        options = {
            "loads": [each.load for each in works],
            "set": {name: in_nvml(name, value) for name, value in setting},
            "allow_gpu_settings": True,
            "seconds": self.wanted.seconds,
            "repeats": self.wanted.repeats,
        }
        return {"name": "gpu_energy", "options": options}

    def _too_slow(self, setting: Setting, values: Mapping[str, float]) -> str:
        """Return how much slower a rung is than the default, if it is too slow even with noise in one trial."""
        slowest = self._work.slowest
        if setting == DEFAULT:
            self._rates += [values[slowest]] if slowest in values else []
        if not self._rates or setting == DEFAULT:
            return ""
        lost = 1 - values[slowest] / median(self._rates)
        if lost <= self.wanted.slowdown + GPU_TRIAL_NOISE:
            return ""
        return f"{100 * lost:.1f} % slower than the default; --max-slowdown allows {100 * self.wanted.slowdown:g} %"

    def _values(self, came: TrialFigures) -> dict[str, float]:
        """Return the value of each case over all GPUs that count energy. A job is as fast as the slowest of them."""
        values: dict[str, float] = {}
        for work in WORKS.values():
            energy, rates = _of(came, work.energy), _of(came, work.rate)
            values |= {work.energy: mean(energy.values())} if energy.keys() == self._gpus else {}
            values |= {work.slowest: min(rates.values())} if rates.keys() == self._gpus else {}
        return values

    def provenance(self) -> Mapping[str, Any]:
        """Return the hosts and conditions of the result."""
        return {
            "hosts": [self._target.name],
            "model": self.model,
            "gpus": len(_value(self._facts, NAMES, "the GPUs' models")),
            "driver": _value(self._facts, "gpu.driver_version", "the driver's version"),
            "limits": _value(self._facts, LIMITS, "the power limits"),
            "ladder": self.wanted.ladder,
            "work": self.wanted.work,
            "max_slowdown": self.wanted.slowdown,
        }

    def proposal(self, setting: Setting) -> Mapping[str, Any]:
        """Return the rung as checks of a site file: plan and apply set it and persist it."""
        wished = {CHECKS[name]: {self.model: f"{value}{UNITS[name]}"} for name, value in setting}
        return {"checks": {check: {"accept": {"by_model": each}, "set": each} for check, each in wished.items()}}


def in_nvml(name: str, value: Any) -> Any:
    """Return the NVML form of a setting's value."""
    return int(value) * 1000 if name == "power_limit" else [int(value), int(value)]


def ladder(facts: HostFacts, wanted: GpuRequest) -> tuple[int, ...]:
    """Return the rungs that all GPUs have, the highest first. Raise BenchError if there are none."""
    rungs = _clocks(facts, wanted.rungs) if wanted.ladder == "clocks" else _limits(facts, wanted.rungs)
    if not rungs:
        raise BenchError(f"the GPUs allow no lower {wanted.ladder}: nothing to try")
    return rungs


def _clocks(facts: HostFacts, rungs: int) -> tuple[int, ...]:
    every = [set(each.get("sm") or ()) for each in _value(facts, CLOCKS, "the clocks that the GPUs support").values()]
    known = sorted(set.intersection(*every)) if every else []
    known = [clock for clock in known if LOWEST * known[-1] <= clock]
    return _spread(known[:-1], rungs)


def _limits(facts: HostFacts, rungs: int) -> tuple[int, ...]:
    bounds = _value(facts, LIMITS, "the power limits that the GPUs allow").values()
    default = min(_value(facts, DEFAULT_LIMIT, "the default power limits").values())
    if not 0 < default < MAX_MILLIWATTS:
        raise BenchError(f"{default} mW is not a valid default power limit: check the GPUs with nvidia-smi -q -d POWER")
    least = max(*(low for low, _ in bounds), LOWEST * default)
    return _spread(list(range(-(-int(least) // 1000), default // 1000)), rungs)


def _spread(known: Sequence[int], rungs: int) -> tuple[int, ...]:
    """Return `rungs` of the sorted values, evenly spread, the highest first."""
    if len(known) <= rungs:
        return tuple(reversed(known))
    step = (len(known) - 1) / (rungs - 1)
    return tuple(sorted({known[round(number * step)] for number in range(rungs)}, reverse=True))


def _free(host: str, found: HostFacts | str, wanted: GpuRequest) -> HostFacts:
    """Return the facts of a host that may be changed. Raise BenchError for any other."""
    if isinstance(found, str):
        raise BenchError(runs.of_host(host, found))
    if isinstance(nvml := found.get(gpu_users.NVML), Absent):
        raise BenchError(f"{host}: no GPU has settings that can be changed: {nvml.reason}")
    busy = gpu_users.busy(found)
    if busy:
        raise BenchError(f"{host}: {busy}: a ladder needs idle GPUs")
    if gpu_users.in_slurm(found) and not wanted.assume_drained:
        raise BenchError(
            f"{host}: slurmd runs there and may start a job meanwhile: drain the node (scontrol update "
            f"NodeName={host} State=DRAIN Reason=tuning), then use --assume-drained"
        )
    return found


def _value(facts: HostFacts, name: str, what: str) -> Any:
    found = runs.value(facts, name)
    if isinstance(found, str) and name != "gpu.driver_version":
        raise BenchError(f"{what} could not be read: {found}")
    if not found:
        raise BenchError(f"{what} could not be read: this host or its driver does not report it")
    return found


def _of(came: TrialFigures, metric: str) -> dict[str, float]:
    """Return the figures of a metric, by GPU."""
    return {each.subject: each.value for each in came.found if each.metric == metric and each.value > 0}


def _without_lock(lines: Any) -> list[dict[str, Any]]:
    known = [each for each in lines if isinstance(each, Mapping)] if isinstance(lines, list) else []
    return [
        {**each, "held": "+".join(word for word in str(each.get("held", "")).split("+") if word != HELD_BY_LOCK)}
        for each in known
    ]


def _watts(came: TrialFigures, power: str) -> float | None:
    found = [each.value for each in came.found if each.metric == power]
    return round(mean(found), 1) if found else None
