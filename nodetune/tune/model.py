"""The values of tuning: parameters, settings, cases, trials. Pure; runs on the controller.

A bench (`Bench`) knows one subject (NCCL, TCP, storage, GPU): its parameters, its cases and how to measure a setting. The method
(`nodetune.tune.study`) knows only benches: it proposes settings, judges trials and never inspects a setting.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from nodetune.statistics.thresholds import MAX_LOSS

Choice = str | int | float
Setting = tuple[tuple[str, Choice], ...]
"""Names and values, sorted by name. Parameters without a value keep the host's default."""

DEFAULT: Setting = ()
"""The control of every block: nothing is changed."""


@dataclass(frozen=True)
class Parameter:
    """One documented parameter. `choices` are useful values in the range that `source` documents, without the default.

    The choice with the lowest cost comes first: of equally good choices, the first is proposed.
    """

    name: str
    choices: tuple[Choice, ...]
    source: str
    unit: str = ""


@dataclass(frozen=True)
class Case:
    """One property that a trial measures, such as all_reduce at 256 MiB. All its values are in `unit`.

    `objective`: the search improves it. Any other case must not become worse by more than the fraction `most_loss`, unless it
    is not `judged`: such a case only shows what a setting does elsewhere. `where` names the table that the case belongs to.
    `coarse`: its noise is that of CPUs, so that a loss counts only beyond its resolution. `weight`: among the objective's cases.
    """

    id: str
    unit: str
    better: str = "higher"
    objective: bool = True
    most_loss: float = MAX_LOSS
    judged: bool = True
    where: str = ""
    coarse: bool = False
    weight: float = 1.0


def objective(cases: Sequence[Case], gains: Mapping[str, float]) -> float:
    """Return the gain of the objective: the weighted mean over its cases."""
    wanted = [case for case in cases if case.objective]
    return sum(case.weight * gains[case.id] for case in wanted) / sum(case.weight for case in wanted)


@dataclass(frozen=True)
class Trial:
    """One full measurement of one setting: the value of each case.

    `banned`: the setting does harm (wrong data, an Xid, a lost link) and is never tried again. `failed`: it could not
    be measured. `disturbed`: others used the hosts meanwhile, so it does not count and may be repeated. Each is empty
    for a trial that counts. `about`: observations (transport, clocks, retransmits), JSON data.
    """

    setting: Setting
    values: Mapping[str, float] = field(default_factory=dict)
    banned: str = ""
    failed: str = ""
    disturbed: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def counts(self) -> bool:
        return not (self.banned or self.failed or self.disturbed)


class Bench(Protocol):
    """One subject on the hosts to tune. Raises nodetune.tune.model.BenchError if nothing can be measured."""

    @property
    def subject(self) -> str:
        """Return the word after `nodetune tune`: nccl, tcp, storage or gpu."""

    @property
    def parameters(self) -> Sequence[Parameter]:
        """Return the parameters that may be changed on these hosts with their installed software."""

    @property
    def cases(self) -> Sequence[Case]:
        """Return the cases that each trial measures."""

    @property
    def arms(self) -> int:
        """Return how many settings a block of the screening has along with the default."""

    @property
    def rounds(self) -> int:
        """Return how many rounds the last settings of the screening get at least."""

    def allowed(self, setting: Setting) -> bool:
        """Return whether the documentation allows these values together."""

    def finalists(
        self, candidates: Sequence[Setting], gains: Mapping[Setting, Mapping[str, float]], made: Sequence[Trial], /
    ) -> list[Setting]:
        """Return what is confirmed, the best first. `candidates`: the best of the screening; `gains`: of each case, logarithms."""

    def begin(self, block: Sequence[Setting], *, applied: bool) -> None:
        """Expect these settings next. `applied`: in the form in which a setting will be applied."""

    def measure(self, setting: Setting, cases: Sequence[Case]) -> Trial:
        """Measure the setting once. Changes on a host are always restored before it returns."""

    def provenance(self) -> Mapping[str, Any]:
        """Return the conditions of the result as JSON data: versions, topology, hosts. A change makes it stale."""

    def proposal(self, setting: Setting) -> Mapping[str, Any]:
        """Return the setting as overrides of a site file for `plan --site` and `apply --site`."""


class OneByOne:
    """A bench that measures one setting after another, always in the form in which it will be applied."""

    arms = 6
    rounds = 4

    def finalists(self, candidates: Sequence[Setting], *_: object) -> list[Setting]:
        """Return the best of the screening."""
        return list(candidates)

    def begin(self, block: Sequence[Setting], *, applied: bool) -> None:
        """Do nothing."""


class BenchError(Exception):
    """Nothing can be measured. The message says why and what to do."""
