"""GPUs as a subject of tuning: a ladder of locked clocks or power limits, each rung a matrix product with its energy."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

from nodetune.api.model import HostFacts
from nodetune.audit import gpu_users
from nodetune.hosts.target import ConnectionOptions, Target
from nodetune.tune.benches import runs
from nodetune.tune.benches.runs import Measured
from nodetune.tune.model import DEFAULT, BenchError, Case, Parameter, Setting, Trial
from nodetune.verify import disturbance
from nodetune.verify import run as verify_run
from nodetune.verify.run import Measure

LADDERS = {"clocks": "locked_clocks", "power": "power_limit"}
CHECKS = {"locked_clocks": "gpu-sm-clock-unwanted", "power_limit": "gpu-power-limit-unwanted"}
UNITS = {"locked_clocks": "MHz", "power_limit": "W"}
LOWEST = 0.5
"""The lowest rung, as a part of the highest clock or of the default power limit: below, work takes more than twice as long."""

HELD_BY_LOCK = "applications_clocks_setting"
"""NVML's word for locked clocks, too."""

ENERGY = Case("energy", "J/TFLOP", better="lower")
RATE = "bf16"
NVML = "https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceCommands.html"
SLURM = "services.processes"
NAMES, CLOCKS = "gpu.names", "gpu.supported_clocks"
LIMITS, DEFAULT_LIMIT = "gpu.power_management_limit_constraints", "gpu.power_management_default_limit"
FACTS = {*verify_run.FACTS, *runs.XIDS, SLURM, NAMES, CLOCKS, LIMITS, DEFAULT_LIMIT, "gpu.driver_version"}


@dataclass(frozen=True)
class Wanted:
    """What is asked for. `slowdown` is a fraction; `seconds` and `repeats` are of the stretches of one trial."""

    allow_gpu_settings: bool = False
    assume_drained: bool = False
    ladder: str = "clocks"
    rungs: int = 6
    slowdown: float = 0.03
    seconds: float = 3.0
    repeats: int = 2

    @property
    def setting(self) -> str:
        return LADDERS[self.ladder]


class GpuBench:
    """All GPUs of one host. Raise BenchError where nothing may be changed or measured."""

    subject = "gpu"

    def __init__(
        self,
        target: Target,
        wanted: Wanted,
        reach: ConnectionOptions,
        how: Measure,
        facts: Callable[..., dict[str, HostFacts | str]] = runs.facts,
    ) -> None:
        if not wanted.allow_gpu_settings:
            raise BenchError("a ladder changes settings of GPUs while it runs: --allow-gpu-settings allows it")
        self._target, self.wanted, self._reach, self._how = target, wanted, reach, how
        self._facts = _free(target.name, facts([target], FACTS, reach)[target.name], wanted)
        self.model = self._model()
        self._choices = ladder(self._facts, wanted)
        self._rates: list[float] = []

    def _model(self) -> str:
        names = _value(self._facts, NAMES, "the GPUs' models")
        if len(set(names.values())) != 1:
            raise BenchError(f"the GPUs of {self._target.name} are of several models: a ladder is for one")
        return str(next(iter(names.values())))

    @property
    def parameters(self) -> Sequence[Parameter]:
        name = self.wanted.setting
        return (Parameter(name, self._choices, NVML, UNITS[name]),)

    @property
    def cases(self) -> Sequence[Case]:
        return (ENERGY,)

    def allowed(self, setting: Setting) -> bool:
        """Return whether the GPUs have these values."""
        return all(name == self.wanted.setting and value in self._choices for name, value in setting)

    def measure(self, setting: Setting, cases: Sequence[Case]) -> Trial:  # noqa: ARG002
        """Measure one rung. The host restores what held before, also if it is killed; where it cannot, tuning ends."""
        began = time.monotonic()
        came = runs.measured([self._target], [self._item(setting)], {}, self._how, self._reach)
        if "not restored" in came.failure:
            raise BenchError(f"{self._target.name}: {came.failure}: set it manually, then look at the GPU")
        energy = [each.value for each in came.found if each.metric == ENERGY.id]
        rates = [each.value for each in came.found if each.metric == RATE]
        common: dict[str, Any] = {
            "setting": setting,
            "about": {"tflops": round(mean(rates), 2) if rates else None, "watts": _watts(came)},
            "seconds": round(time.monotonic() - began, 3),
        }
        if came.wrong:
            return Trial(banned=came.wrong, **common)
        if came.rival:
            return Trial(disturbed=came.rival, **common)
        if came.failure or not rates or not energy or min(energy) <= 0:
            return Trial(failed=came.failure or came.skipped or "the energy was not measured", **common)
        disturbed = _disturbance(came, setting)
        too_slow = "" if disturbed else self._too_slow(setting, mean(rates))
        if too_slow:
            return Trial(banned=too_slow, **common)
        return Trial(values={ENERGY.id: mean(energy)}, disturbed=disturbed, **common)

    def _item(self, setting: Setting) -> dict[str, Any]:
        options = {
            "set": {name: in_nvml(name, value) for name, value in setting},
            "allow_gpu_settings": True,
            "seconds": self.wanted.seconds,
            "repeats": self.wanted.repeats,
        }
        return {"name": "gpu_energy", "options": options}

    def _too_slow(self, setting: Setting, rate: float) -> str:
        """Return by how much a rung is slower than the default; empty if that is allowed, or no default is known yet."""
        if setting == DEFAULT:
            self._rates.append(rate)
        if not self._rates or setting == DEFAULT:
            return ""
        lost = 1 - rate / median(self._rates)
        if lost <= self.wanted.slowdown:
            return ""
        return f"{100 * lost:.1f} % slower than the default; --max-slowdown allows {100 * self.wanted.slowdown:g} %"

    def provenance(self) -> Mapping[str, Any]:
        """Return what the result holds for."""
        return {
            "hosts": [self._target.name],
            "model": self.model,
            "gpus": len(_value(self._facts, NAMES, "the GPUs' models")),
            "driver": _value(self._facts, "gpu.driver_version", "the driver's version"),
            "limits": _value(self._facts, LIMITS, "the power limits"),
            "ladder": self.wanted.ladder,
            "max_slowdown": self.wanted.slowdown,
        }

    def proposal(self, setting: Setting) -> Mapping[str, Any]:
        """Return the rung as checks of a site file: plan and apply set it, and keep it over reboots."""
        wished = {CHECKS[name]: {self.model: f"{value}{UNITS[name]}"} for name, value in setting}
        return {"checks": {check: {"accept": {"by_model": each}, "set": each} for check, each in wished.items()}}


def in_nvml(name: str, value: Any) -> Any:
    """Return a value of a setting as NVML takes it."""
    return int(value) * 1000 if name == "power_limit" else [int(value), int(value)]


def ladder(facts: HostFacts, wanted: Wanted) -> tuple[int, ...]:
    """Return the rungs that all GPUs have, the highest first. Raise BenchError if there are none."""
    rungs = _clocks(facts, wanted.rungs) if wanted.ladder == "clocks" else _limits(facts, wanted.rungs)
    if not rungs:
        raise BenchError(f"the GPUs allow no lower {wanted.ladder}: there is nothing to try")
    return rungs


def _clocks(facts: HostFacts, rungs: int) -> tuple[int, ...]:
    every = [set(each["sm"]) for each in _value(facts, CLOCKS, "the clocks that the GPUs have").values()]
    known = sorted(set.intersection(*every)) if every else []
    known = [clock for clock in known if LOWEST * known[-1] <= clock]
    return _spread(known[:-1], rungs)


def _limits(facts: HostFacts, rungs: int) -> tuple[int, ...]:
    bounds = _value(facts, LIMITS, "the power limits that the GPUs allow").values()
    default = min(_value(facts, DEFAULT_LIMIT, "the default power limits").values())
    least = max(*(low for low, _ in bounds), LOWEST * default)
    return _spread(list(range(-(-int(least) // 1000), default // 1000)), rungs)


def _spread(known: Sequence[int], rungs: int) -> tuple[int, ...]:
    """Return so many of the sorted values, evenly spread, the highest first."""
    if len(known) <= rungs:
        return tuple(reversed(known))
    step = (len(known) - 1) / (rungs - 1)
    return tuple(sorted({known[round(number * step)] for number in range(rungs)}, reverse=True))


def _free(host: str, found: HostFacts | str, wanted: Wanted) -> HostFacts:
    """Return the facts of a host that may be changed. Raise BenchError for any other."""
    if isinstance(found, str):
        raise BenchError(f"{host}: {found}")
    busy = gpu_users.busy(found)
    if busy:
        raise BenchError(f"{host}: {busy}: a ladder is only for GPUs that nobody uses")
    if gpu_users.in_slurm(found) and not wanted.assume_drained:
        raise BenchError(
            f"{host}: slurmd runs there and may start a job meanwhile: drain the node (scontrol update "
            f"NodeName={host} State=DRAIN Reason=tuning), then say --assume-drained"
        )
    return found


def _value(facts: HostFacts, name: str, what: str) -> Any:
    found = runs.value(facts, name)
    if isinstance(found, str) and name != "gpu.driver_version":
        raise BenchError(f"{what} could not be read: {found}")
    if not found:
        raise BenchError(f"{what} could not be read: this host or its driver does not tell")
    return found


def _disturbance(came: Measured, setting: Setting) -> str:
    """Return what disturbed a trial. That our own lock holds the clocks down is what the rung is about."""
    if "locked_clocks" not in dict(setting):
        return came.disturbance
    told = {key: {**each, "gpus": _without_lock(each.get("gpus"))} for key, each in came.others.items()}
    return next(
        (each.disturbance for each in (disturbance.marked(one, told) for one in came.found) if each.disturbance), ""
    )


def _without_lock(lines: Any) -> list[dict[str, Any]]:
    known = [each for each in lines if isinstance(each, Mapping)] if isinstance(lines, list) else []
    return [
        {**each, "held": "+".join(word for word in str(each.get("held", "")).split("+") if word != HELD_BY_LOCK)}
        for each in known
    ]


def _watts(came: Measured) -> float | None:
    found = [each.value for each in came.found if each.metric == "power"]
    return round(mean(found), 1) if found else None
