"""The values of tuning: parameters, settings, cases, trials. Pure; runs on the controller.

A bench (`Bench`) knows one subject (NCCL, TCP, storage, GPU): its parameters, its cases and how to measure a setting. The method
(`nodetune.tune.study`) knows only benches: it proposes settings, judges trials and never looks inside a setting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

Choice = str | int | float
Setting = tuple[tuple[str, Choice], ...]
"""Names and values, sorted by name. What is not named keeps the host's default."""

DEFAULT: Setting = ()
"""The control of every block: nothing is changed."""


@dataclass(frozen=True)
class Parameter:
    """One documented setting. `choices` are worth trying and within the range that `source` documents, default left out.

    What costs least comes first: of choices that are as good, the first is proposed.
    """

    name: str
    choices: tuple[Choice, ...]
    source: str
    unit: str = ""


@dataclass(frozen=True)
class Case:
    """One thing that a trial measures, such as all_reduce at 256 MiB. All its values are in `unit`.

    `objective`: the search wants it better. Any other case must only not become worse, by more than the fraction `most_loss`.
    """

    id: str
    unit: str
    better: str = "higher"
    objective: bool = True
    most_loss: float = 0.01


@dataclass(frozen=True)
class Trial:
    """One full measurement of one setting: the value of each case.

    `banned`: the setting does harm (wrong data, an Xid, a lost link): it is never tried again. `failed`: it could not be
    measured. `disturbed`: others used the hosts meanwhile, so it does not count and may be repeated. Each is empty for a trial
    that counts. `about`: what was observed meanwhile (transport, clocks, retransmits), JSON data.
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
    """One subject on the hosts that it is tuned for. Raises nodetune.tune.model.BenchError where nothing can be measured."""

    @property
    def subject(self) -> str:
        """Return the word after `nodetune tune`: nccl, tcp, storage or gpu."""

    @property
    def parameters(self) -> Sequence[Parameter]:
        """Return what may be changed on these hosts, with what is installed there."""

    @property
    def cases(self) -> Sequence[Case]:
        """Return what each trial measures."""

    def allowed(self, setting: Setting) -> bool:
        """Return whether the documentation allows these values together."""

    def measure(self, setting: Setting, cases: Sequence[Case]) -> Trial:
        """Measure the setting once. What the trial changed on a host is restored before it returns, whatever happens."""

    def provenance(self) -> Mapping[str, Any]:
        """Return what the result holds for: versions, topology, hosts. JSON data; the result is stale when any of it changes."""

    def proposal(self, setting: Setting) -> Mapping[str, Any]:
        """Return the setting as overrides of a site file: what `plan --site` and `apply --site` then carry out."""


class BenchError(Exception):
    """Nothing can be measured. The message says why and what to do."""
