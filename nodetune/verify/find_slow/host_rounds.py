"""Execute rounds on hosts: what each group measures, and the result that its events give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.hosts.target import Target
from nodetune.remote.live_pool import Ended
from nodetune.verify import catalogue, figures
from nodetune.verify.find_slow.model import FAILED, HANG, SOLO, WRONG, GroupResult, Round
from nodetune.verify.find_slow.stragglers import kind_of, usual_figures
from nodetune.verify.findings import WRONG as WRONG_WORDS
from nodetune.verify.model import Figure, Unmeasured
from nodetune.verify.request import VerifyRequest
from nodetune.verify.run import Event, Measure, Plan, Tell
from nodetune.verify.suites import Item

RAILS = "rails"
SOLO_ON_GPUS, SOLO_ON_CPUS = ("gemm", "gpu_memory"), ("memory",)

HANGING = ("not finished", "nothing moved", "sent nothing about")
"""Marks of a hang in the reasons of the payload."""

NEAR_DEADLINE = 3.0
"""A measurement that takes until this many seconds before its deadline, or longer, and fails, hangs."""


@dataclass(frozen=True)
class RoundSettings:
    """How rounds are measured. `seconds` is the deadline of a run: a hang costs that much."""

    seconds: float = 60.0
    solo: tuple[Item, ...] = ()
    rails: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(request: VerifyRequest, on_gpus: bool) -> RoundSettings:
        """Return the settings of a request. `on_gpus`: whether a host has GPUs."""
        measure = request.measure
        gpus = {"gpus": list(measure.gpus)} if measure.gpus else {}
        rails = {
            **gpus,
            **{name: value for name, value in (("nccl", measure.nccl), ("network", measure.network)) if value},
        }
        kinds = [catalogue.of(name) for name in (SOLO_ON_GPUS if on_gpus else SOLO_ON_CPUS)]
        items = [{"seconds": kind.seconds, **kind.item("quick")} for kind in kinds]
        solo = tuple({**item, "options": {**item["options"], **gpus}} for item in items)
        return RoundSettings(request.round_seconds, solo, rails, dict(measure.env))


@dataclass
class _HostReport:
    """The report of one host in a round."""

    figures: list[Figure] = field(default_factory=list)
    failures: list[Unmeasured] = field(default_factory=list)
    seconds: float = 0.0
    began: bool = False
    lost: str = ""


class HostRounds:
    """Rounds on real hosts, in the order of the fleet's nodes."""

    def __init__(
        self,
        targets: Sequence[Target],
        measure: Measure,
        connection: ConnectionOptions,
        settings: RoundSettings,
        report: Tell,
    ) -> None:
        self._targets, self._measure, self._connection = targets, measure, connection
        self._settings, self._report = settings, report
        self.solo_figures: list[Figure] = []
        """Every figure of a host by itself."""
        self.reasons: dict[str, str] = {}
        """Why a host could not be measured, or why its run broke: the last reason of each."""
        self.unit = ""

    def execute(self, planned: Round) -> list[GroupResult]:
        """Execute a round. Return the result of each group, in order."""
        reports = self._reports(planned)
        if planned.kind == SOLO:
            self.solo_figures += [figure for report in reports.values() for figure in report.figures]
            return self._solo_results(
                [[reports[self._targets[node].name] for node in group] for group in planned.groups]
            )
        return [self._group_result([reports[self._targets[node].name] for node in group]) for group in planned.groups]

    def _reports(self, planned: Round) -> dict[str, _HostReport]:
        groups = {node: group for group in planned.groups for node in group}
        plans = {self._targets[node].name: self._plan(planned.kind, group) for node, group in groups.items()}
        reports = {host: _HostReport() for host in plans}
        targets = [self._targets[node] for node in sorted(groups)]
        for target, event in self._measure(targets, lambda target: plans[target.name], self._connection):
            self._take(target.name, event, reports[target.name])
        return reports

    def _plan(self, kind: str, group: Sequence[int]) -> Plan:
        env = dict(self._settings.env)
        if kind == SOLO:
            return {"measurements": [dict(item) for item in self._settings.solo], "env": env}
        item = {"name": RAILS, "options": dict(self._settings.rails), "seconds": self._settings.seconds}
        names = [self._targets[node].name for node in group]
        return {"measurements": [item], "group": {"hosts": names}, "env": {"NCCL_ALGO": "Ring", **env}}

    def _take(self, host: str, event: Event, report: _HostReport) -> None:
        if isinstance(event, Ended):
            if event.problem:
                report.lost = event.problem.message
                self.reasons[host] = report.lost
            return
        report.began |= "begin" in event
        if "record" in event:
            figure = figures.of(host, event["record"])
            if isinstance(figure, Figure):
                report.figures.append(figure)
            else:
                report.failures.append(figure)
                self.reasons[host] = figure.reason
        if "done" in event:
            seconds = event["done"].get("seconds")
            report.seconds = max(report.seconds, float(seconds) if isinstance(seconds, int | float) else 0.0)
        if "step" in event:
            self._report(host, str(event["step"].get("text")))

    def _group_result(self, reports: Sequence[_HostReport]) -> GroupResult:
        """Return the slowest host's figure of each rail: all of a group take part in each."""
        fault = self._fault(reports, self._settings.seconds)
        rails: dict[str, float] = {}
        for figure in (figure for report in reports for figure in report.figures):
            self.unit = figure.unit
            rails[figure.subject] = min(figure.value, rails.get(figure.subject, figure.value))
        failures = [failure for report in reports for failure in report.failures]
        broken = {failure.subject for failure in failures if failure.status == "failed"}
        if fault == WRONG and rails and "" not in broken:
            rails |= dict.fromkeys(broken, 0.0)
            return GroupResult(_by_number(rails), fault)
        return GroupResult((), fault) if fault else GroupResult(_by_number(rails))

    def _fault(self, reports: Sequence[_HostReport], seconds: float) -> str:
        failures = [failure for report in reports for failure in report.failures if failure.status == "failed"]
        reasons = [failure.reason for failure in failures]
        if any(words in reason for reason in reasons for words in WRONG_WORDS):
            return WRONG
        late = any(report.failures and report.seconds >= seconds - NEAR_DEADLINE for report in reports)
        if reasons and (late or any(words in reason for reason in reasons for words in HANGING)):
            return HANG
        return FAILED if reasons or any(report.began and report.lost for report in reports) else ""

    def _solo_results(self, groups: Sequence[Sequence[_HostReport]]) -> list[GroupResult]:
        """Return each host's parts as fractions of what the fleet usually gives, by the worst of its metrics."""
        usual = usual_figures(self.solo_figures)
        results = []
        for (report,) in groups:
            seconds = sum(float(item.get("seconds") or self._settings.seconds) for item in self._settings.solo)
            fault = self._fault([report], seconds)
            parts: dict[str, float] = {}
            for figure in report.figures:
                if kind_of(figure) in usual:
                    share = figure.value / usual[kind_of(figure)]
                    parts[figure.subject] = min(share, parts.get(figure.subject, share))
            results.append(GroupResult((), fault) if fault else GroupResult(_by_number(parts)))
        return results


def _by_number(parts: Mapping[str, float]) -> tuple[float, ...]:
    """Return the figures by the number in their subjects: rail 2 before rail 10."""
    return tuple(parts[name] for name in sorted(parts, key=lambda name: (len(name), name)))
