"""The values of verify: figures in, verdicts out. Pure; runs on the controller.

`figures` reads records of hosts, `machine` describes the measured machine, `evaluate` compares figures with a site's
baseline (`baseline`), their peers (`peers`) and shipped figures (`reference`, nodetune/verify/expected/); `limits` adds what the
hardware allows, `diagnosis` the suspect, `findings` faults that figures do not show, `compare` the changes.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from nodetune.api.device import Device

NOTE = "note"
"""The status of a finding that was meant so, or has no limit."""

PASS, SHORT, UNKNOWN, SKIP, FAILED = STATUSES = ("pass", "short", "unknown", "skip", "failed")
"""short: below target. unknown: no reference. skip: not measurable here. failed: an error."""

PEERS = "siblings"
"""The kind of an expectation from peers: the name in schema nodetune.verify/1."""

STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {"max": max, "min": min, "mean": statistics.fmean}
"""Values of `about["statistic"]` other than the median. For any other value, the samples already are that statistic."""


def in_words(measurement: str, metric: str, subject: str) -> str:
    """Return what was measured of what, each word once: `gemm bf16 GPU0`."""
    return " ".join(dict.fromkeys(part for part in (measurement, metric, subject) if part))


@dataclass(frozen=True)
class Figure:
    """One measured property. `runs` holds the samples of each process that measured it, in order; all in `unit`.

    `about` has its conditions: JSON data, partly from the host. `disturbed` says for each run what disturbed
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

    @property
    def name(self) -> str:
        return in_words(self.measurement, self.metric, self.subject)

    @cached_property
    def by_run(self) -> tuple[float, ...]:
        """One value for each run that counts: its median, or its worst or best sample if `about` says so."""
        chosen = STATISTICS.get(str(self.about.get("statistic")), statistics.median)
        return tuple(float(chosen(run)) for run in self._counting)

    @property
    def _counting(self) -> Sequence[tuple[float, ...]]:
        calm = [run for run, why in zip(self.runs, self.run_disturbances, strict=True) if not why]
        return calm or self.runs

    @property
    def run_disturbances(self) -> tuple[str, ...]:
        """The disturbance of each run."""
        return (*self.disturbed, *([""] * len(self.runs)))[: len(self.runs)]

    @property
    def lost(self) -> int:
        """The number of disturbed runs."""
        return sum(bool(why) for why in self.run_disturbances)

    @property
    def disturbance(self) -> str:
        """The disturbance if every run was disturbed, else empty."""
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
        """+1 if more is better, -1 if less is."""
        return 1 if self.better == "higher" else -1


@dataclass(frozen=True)
class Unmeasured:
    """A measurement without a figure: `status` is skip or failed."""

    host: str
    measurement: str
    status: str
    reason: str
    metric: str = ""
    subject: str = ""

    @property
    def name(self) -> str:
        return in_words(self.measurement, self.metric, self.subject)


@dataclass(frozen=True)
class Expectation:
    """The reference for a figure. `kind`: baseline, PEERS or shipped.

    `typical` is the usual value (None: unknown), `bound` the worst that passes, `derivation` its explanation.
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
    """The maximum that the hardware allows, and the part that sets it."""

    value: float
    what: str


@dataclass(frozen=True)
class Verdict:
    """The verdict on one figure. `again`: the figure's second measurement; `reason` has details.

    `disturbed`: the disturbance that prevents a verdict although the figure is below target.
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
        """The figure as a fraction of the hardware limit."""
        return self.figure.value / self.limit.value if self.limit else None


@dataclass(frozen=True)
class VerifyFinding:
    """A fault that figures alone do not show, by its id. `status`: short (counts as below target) or note.

    `hosts`: both ends, of a path. `device`: the one that it is about, where no subject names it.
    """

    fault: str
    host: str
    status: str
    title: str
    subjects: tuple[str, ...] = ()
    next: str = ""
    hosts: tuple[str, ...] = ()
    device: Device | None = None
