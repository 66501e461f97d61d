"""A simulated pair of GPUs with the noise of real ones: NCCL settings as `nodetune tune nccl` measures them, with a known truth.

From rounds of two H100s (tests/data/recordings/nccl/settings-h100x2.jsonl), starts of processes on two H200s, and
communicators made at other places, and calls one by one, on two H100s. All values are drawn from what was recorded.
"""

import json
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from nodetune.measurements.nccl_settings import DEFAULTS as DEFAULT_PLACES
from nodetune.tune.benches.nccl_cases import APPLIED, SCREENED, NcclRequest, case_of
from nodetune.tune.model import DEFAULT, Case, Parameter, Setting, Trial
from nodetune.verify import figures

RECORDED = Path(__file__).parents[2] / "tests" / "data" / "recordings" / "nccl" / "settings-h100x2.jsonl"
BEST = (("NCCL_MIN_CTAS", 32),)
PARAMETERS = (
    Parameter("NCCL_MIN_CTAS", (16, 32, 64), "simulated"),
    Parameter("NCCL_BUFFSIZE", (2097152, 8388608), "simulated"),
)
WANTED = NcclRequest(objective="bandwidth")
BLOCK_SECONDS = {False: (6.0, 1.2), True: (2.8, 1.4)}
"""A block in the screening, and with processes of its own: what it takes, and what each setting adds. A part of it is the start."""

START = 0.5

DEFAULTS = (Parameter("NCCL_BUFFSIZE", (4194304,), "simulated"), Parameter("NCCL_MIN_CTAS", (1,), "simulated"))
"""Settings that are the default anyway."""

STARTS = {
    "64 KiB": (-0.97, -0.35, 0.77, -0.96, 0.52, 0.35, -0.34, -1.25, 0.34, 1.23, -1.77, 1.26),
    "1 MiB": (-1.01, -1.17, 0.69, 0.07, -0.07, 0.15, -1.19, -1.30, 1.30, 1.36, -0.49, 0.49),
    "16 MiB": (-0.11, -0.36, 0.44, 0.63, 0.16, 0.80, -0.40, -0.44, 0.13, 0.55, -0.68, 0.38),
    "256 MiB": (0.49, -0.46, -0.52, 0.03, 0.10, 0.30, -0.21, -0.19, -0.08, 0.30, 0.40, 0.37),
    "1 GiB": (0.41, -0.13, -0.32, 0.13, -0.24, 0.29, -0.09, 0.41, 0.19, -0.94, 0.41, -0.52),
}
"""Per cent by which a start of processes differed from the median, of a setting and of the default."""

PLACES = {
    "64 KiB": (-0.4, -1.2),
    "1 MiB": (-0.3, 0.2),
    "16 MiB": (-2.2, 0.3),
    "256 MiB": (0.0, -0.1),
    "1 GiB": (0.0, -0.1),
}
"""Per cent of a second communicator of the default, of the same process, against the first."""

CALLED = {
    "64 KiB": (12.30, 12.74, 12.01, 12.11, 12.51, 12.41, 13.15, 12.71, 12.76, 18.29, 19.07, 18.12),
    "1 MiB": (13.4, 13.1, 13.6, 13.0, 13.9, 13.4, 14.1, 13.2),
}
"""Microseconds of a call with nccl-tests, one start after another: 64 KiB has two modes, whatever the setting is."""

CALLED_PLACES = (3.8, -5.2, 1.9, 2.2)
CALLED_ROUND = {"64 KiB": 0.055, "1 MiB": 0.08}
"""Median absolute difference of two visits, as a fraction."""

CLOCK = 0.03
"""Fraction between the two clocks of a bimodal GPU."""


def _cases() -> tuple[list[Case], Mapping[str, Sequence[float]]]:
    """Return the cases of a tuning, and of each recorded one the differences of rounds from their median (logarithms)."""
    samples: dict[str, dict[str, list[float]]] = {}
    cases = []
    for line in RECORDED.read_text("utf-8").splitlines():
        found = json.loads(line)
        case = case_of(figures.read("recorded", found), WANTED)
        cases.append(case)
        samples.setdefault(case.id, {})[found["subject"]] = found["samples"]
    rounds = {}
    for name, of in samples.items():
        base = of.pop("setting 0")
        logs = [[math.log(value / other) for value, other in zip(each, base, strict=True)] for each in of.values()]
        rounds[name] = [value - statistics.median(each) for each in logs for value in each]
    about = {"measurement": "nccl_settings", "subject": "setting 0", "samples": [20.0], "unit": "µs", "better": "lower"}
    called = [
        {**about, "metric": f"{name}_call", "about": {"size": size}}
        for size in WANTED.launched
        for name in WANTED.names
    ]
    cases += [case_of(figures.read("recorded", each), WANTED) for each in called]
    return list(dict.fromkeys(cases)), rounds


def _process(setting: Setting) -> str:
    """Return the process that a setting has in the screening: communicators carry CTAs, and no buffer size."""
    return str(dict(setting).get("NCCL_BUFFSIZE", ""))


CASES, ROUNDS = _cases()
NAMED = tuple(replace(case, judged=case.judged or case.coarse) for case in CASES)
"""The cases where --sizes names the sizes of calls one by one."""


@dataclass
class RecordedPair:
    """A bench. `drift`: a fraction an hour. `slow_rank`: what a rank that slows down now and then takes, as a fraction."""

    random: Random
    effect: Callable[[Setting, Case], float] = lambda *_: 0.0
    drift: float = 0.0
    slow_rank: float = 0.0
    two_clocks: bool = False
    parameters: Sequence[Parameter] = PARAMETERS
    cases: Sequence[Case] = tuple(CASES)
    subject: str = "nccl"
    arms: int = 12
    rounds: int = 2
    clock: float = 0.0
    _block: Sequence[Setting] = ()
    _applied: bool = False
    _ready: dict[Setting, Trial] = field(default_factory=dict)
    _states: dict[float, tuple[float, bool]] = field(default_factory=dict)

    def allowed(self, _: Setting) -> bool:
        return True

    def finalists(self, found: Sequence[Setting], *_: object) -> list[Setting]:
        return list(found)

    def begin(self, block: Sequence[Setting], *, applied: bool) -> None:
        self._block, self._applied, self._ready = list(block), applied, {}

    def measure(self, setting: Setting, cases: Sequence[Case]) -> Trial:
        if setting not in self._ready:
            self._ready = self._measured(list(dict.fromkeys([DEFAULT, *self._block, setting])), cases)
        return self._ready.pop(setting)

    def _measured(self, block: Sequence[Setting], cases: Sequence[Case]) -> dict[Setting, Trial]:
        """Return what rounds of all settings give: the ratio to the default of each round, and their median."""
        values: dict[Setting, dict[str, float]] = {each: {} for each in block}
        fixed, more = BLOCK_SECONDS[self._applied]
        took = (fixed / len(block) + more) * (START + (1 - START) * len(cases) / len(self.cases))
        count = APPLIED if self._applied else SCREENED
        pace = took / (count * len(cases))
        for case in cases:
            places = {each: 1 if each or self._applied else DEFAULT_PLACES for each in block}
            starts = {each: statistics.fmean(self._start(case) for _ in range(places[each])) for each in block}
            own = {each: starts[each] + math.log1p(self.effect(each, case)) for each in block}
            processes = {each: 0.0 if self._applied else self._process(case) for each in map(_process, block)}
            fixed = {each: own[each] + processes[_process(each)] for each in block}
            logs: dict[Setting, list[float]] = {each: [] for each in block}
            for _ in range(count):
                for each in self.random.sample(block, len(block)):
                    self.clock += pace
                    logs[each].append(fixed[each] + self._round(case) + math.log(self._speed()))
            middle = statistics.median(logs[DEFAULT])
            for each in block:
                ratio = statistics.median(own - base for own, base in zip(logs[each], logs[DEFAULT], strict=True))
                speed = math.exp(middle + ratio)
                values[each][case.id] = 100 * (speed if case.better == "higher" else 1 / speed)
        return {each: Trial(each, found, seconds=took) for each, found in values.items()}

    def _start(self, case: Case) -> float:
        """Return what a process of its own, or the place among communicators, does to a case."""
        size = next(size for size in STARTS if f" {size}" in case.id)
        if not case.coarse:
            return self.random.choice(STARTS[size] if self._applied else (0.0, *PLACES[size])) / 100
        if not self._applied:
            return self.random.choice((0.0, *CALLED_PLACES)) / 100
        return -math.log(self.random.choice(CALLED[size]) / statistics.median(CALLED[size]))

    def _process(self, case: Case) -> float:
        """Return what a process of several communicators does to a case."""
        size = next(size for size in STARTS if f" {size}" in case.id)
        return 0.0 if case.coarse else self.random.choice(STARTS[size]) / 100

    def _round(self, case: Case) -> float:
        if not case.coarse:
            return self.random.choice(ROUNDS[case.id])
        size = next(size for size in CALLED_ROUND if f" {size}" in case.id)
        return self.random.gauss(0, CALLED_ROUND[size])

    def _speed(self) -> float:
        slow = self.slow_rank * self._on("rank", 0.2)
        return (
            (1 + self.drift * self.clock / 3600) * (1 - slow) * (1 - CLOCK * self.two_clocks * self._on("clock", 0.5))
        )

    def _on(self, what: str, share: float) -> bool:
        """Return a state that lasts for some seconds and then is drawn once more."""
        until, state = self._states.get(what, (0.0, False))
        if self.clock > until:
            until, state = self.clock + self.random.expovariate(1 / 10), self.random.random() < share
            self._states[what] = until, state
        return state

    def provenance(self) -> Mapping[str, str]:
        return {}

    def proposal(self, _: Setting) -> Mapping[str, str]:
        return {}
