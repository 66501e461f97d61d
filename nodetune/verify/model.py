"""The values of verify: figures in, verdicts out. Pure; runs on the controller.

`figures` reads what hosts sent, `machine` says what they were measured on, `evaluate` compares them with a site's
baseline (`baseline`), their peers (`peers`) and shipped figures (`reference`, nodetune/verify/expected/); `limits` adds what the
hardware allows, `diagnosis` the suspect, `findings` what is wrong although the figure is right, `compare` what changed.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

PASS, SHORT, UNKNOWN, SKIP, FAILED = STATUSES = ("pass", "short", "unknown", "skip", "failed")
"""short: below target. unknown: nothing to compare it with. skip: not measurable here. failed: went wrong."""

PEERS = "siblings"
"""The kind of an expectation from peers: the name in schema nodetune.verify/1."""

STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {"max": max, "min": min, "mean": statistics.fmean}
"""What `about["statistic"]` may name instead of the median. Any other says that the samples are that statistic already."""


@dataclass(frozen=True)
class Figure:
    """One measured thing. `runs` holds the samples of each process that measured it, in order; all in `unit`.

    `about` are the conditions that it holds for: JSON data, partly from the host. `disturbed` says of each run what disturbed
    it (see disturbance.py), empty for none. Disturbed runs do not count if there are others.
    """

    host: str
    measurement: str
    metric: str
    subject: str
    runs: tuple[tuple[float, ...], ...]
    unit: str
    better: str = "higher"
    about: Mapping[str, Any] = field(default_factory=dict)
    disturbed: tuple[str, ...] = ()

    @cached_property
    def by_run(self) -> tuple[float, ...]:
        """One value a run that counts: its median, or its worst or best sample where `about` says that this is the statistic."""
        chosen = STATISTICS.get(str(self.about.get("statistic")), statistics.median)
        return tuple(float(chosen(run)) for run in self._counting)

    @property
    def _counting(self) -> Sequence[tuple[float, ...]]:
        calm = [run for run, why in zip(self.runs, self.run_disturbances, strict=True) if not why]
        return calm or self.runs

    @property
    def run_disturbances(self) -> tuple[str, ...]:
        """What disturbed each run."""
        return (*self.disturbed, *([""] * len(self.runs)))[: len(self.runs)]

    @property
    def lost(self) -> int:
        """How many runs were disturbed."""
        return sum(bool(why) for why in self.run_disturbances)

    @property
    def disturbance(self) -> str:
        """What disturbed it, if no run of it was left alone."""
        found = self.run_disturbances
        return found[-1] if found and all(found) else ""

    @cached_property
    def value(self) -> float:
        return statistics.median(self.by_run)

    @property
    def samples(self) -> tuple[float, ...]:
        return tuple(sample for run in self.runs for sample in run)

    @property
    def sign(self) -> int:
        """+1 where more is better, -1 where less is."""
        return 1 if self.better == "higher" else -1


@dataclass(frozen=True)
class Unmeasured:
    """What a host could not measure: `status` is skip or failed."""

    host: str
    measurement: str
    status: str
    reason: str
    metric: str = ""
    subject: str = ""


@dataclass(frozen=True)
class Expectation:
    """What a figure is compared with. `kind`: baseline, PEERS or shipped.

    `typical` is what it usually is (None: not known), `bound` the worst that passes, `derivation` how that came about.
    """

    kind: str
    bound: float
    provenance: str
    typical: float | None = None
    derivation: str = ""

    def met_by(self, figure: Figure) -> bool:
        return figure.sign * (figure.value - self.bound) >= 0


@dataclass(frozen=True)
class Limit:
    """What the hardware could do at most, and which part sets that."""

    value: float
    what: str


@dataclass(frozen=True)
class Verdict:
    """What one figure came to. `again`: what it measured when it was measured once more; `reason` says more.

    `disturbed`: what kept it from being judged although it is below target.
    """

    figure: Figure
    status: str
    expected: Expectation | None = None
    limit: Limit | None = None
    again: tuple[float, ...] = ()
    suspect: str = ""
    reason: str = ""
    disturbed: str = ""

    @property
    def fraction(self) -> float | None:
        """Of the hardware's own limit."""
        return self.figure.value / self.limit.value if self.limit else None


@dataclass(frozen=True)
class VerifyFinding:
    """Something wrong that figures alone do not show. `status`: short (counts as fallen short) or note."""

    host: str
    status: str
    title: str
    subjects: tuple[str, ...] = ()
    next: str = ""
