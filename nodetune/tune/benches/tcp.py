"""Tune TCP: buffers, congestion control and queues of two hosts, by real streams between them."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nodetune.api.model import HostFacts
from nodetune.foundation import text
from nodetune.foundation.request import built, one_of, part
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.hosts.target import Target
from nodetune.onhost import sysctl
from nodetune.tune.benches import kernel_settings, runs
from nodetune.tune.benches.kernel_settings import Knob, KnobBench
from nodetune.tune.benches.runs import TrialFigures
from nodetune.tune.model import BenchError, Case, Parameter, Setting, Trial
from nodetune.tune.request import StudyRequest
from nodetune.verify.model import Figure
from nodetune.verify.run import Measure

RMEM, WMEM = "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"
CONGESTION, AVAILABLE = "net.ipv4.tcp_congestion_control", "net.ipv4.tcp_available_congestion_control"
BACKLOG, BUDGET = "net.core.netdev_max_backlog", "net.core.netdev_budget"
BUFFERS = {"1MiB": 1 << 20, "4MiB": 4 << 20, "16MiB": 16 << 20, "64MiB": 64 << 20, "256MiB": 256 << 20}
BACKLOGS, BUDGETS = (1000, 5000, 30000), (300, 600, 1200)
WORTH_TRYING = ("cubic", "bbr", "htcp")
"""Without dctcp, which needs switches that mark congestion, and reno, which recovers slowly on fast links."""

ALWAYS = (RMEM, WMEM, CONGESTION, AVAILABLE)
OPTIONAL = (BACKLOG, BUDGET)
"""Network namespaces do not have them."""

FACTS = {"host.kernel", *(f"sysctl.{name}" for name in (*ALWAYS, *OPTIONAL))}
IP, NET = "https://docs.kernel.org/networking/ip-sysctl.html", "https://docs.kernel.org/admin-guide/sysctl/net.html"
OBJECTIVES = {"one-stream": "one_stream", "many-streams": "tcp"}
SECONDS = 2


@dataclass(frozen=True)
class TcpRequest:
    """The request. `network`: only addresses in it; `interface`: its name on both hosts."""

    allow_settings: bool = False
    objective: str = one_of("one-stream", OBJECTIVES)
    network: str = ""
    interface: str = ""
    connection: ConnectionOptions = built()
    study: StudyRequest = part(StudyRequest)


class TcpBench(KnobBench):
    """Two hosts. Raise BenchError if nothing may be changed or measured."""

    subject = "tcp"

    def __init__(
        self,
        targets: Sequence[Target],
        wanted: TcpRequest,
        connection: ConnectionOptions,
        how: Measure,
        facts: Callable[..., dict[str, HostFacts | str]] = runs.facts,
    ) -> None:
        if not wanted.allow_settings:
            raise BenchError("sysctls of both hosts change during the measurement: allow this with --allow-settings")
        if len(targets) != 2:
            raise BenchError(f"{text.count(len(targets), 'host')}: TCP tuning needs exactly two, as in -l HOST,HOST")
        self._targets, self.wanted, self._connection, self._how = list(targets), wanted, connection, how
        self._facts = facts(self._targets, FACTS, connection)
        self.knobs = knobs(self._facts)
        first = self._measured(())
        if first.failure and not first.rival:
            first = self._measured(())  # a connection that breaks once says nothing of the hosts
        if first.failure or not first.found:
            raise BenchError(
                first.failure or first.skipped or "nothing was measured: nodetune verify --only tcp says why"
            )
        self._cases = tuple(self._case(figure) for figure in first.found)
        self._ways = {_id(figure): _way(figure) for figure in first.found}

    def _case(self, figure: Figure) -> Case:
        return Case(_id(figure), figure.unit, objective=figure.metric == OBJECTIVES[self.wanted.objective])

    def measure(self, setting: Setting, cases: Sequence[Case]) -> Trial:
        """Measure both directions once. The hosts restore the previous settings, even if killed."""
        began, came = time.monotonic(), self._measured(setting)
        about = {_id(figure): _observed(figure) for figure in came.found}
        common: dict[str, Any] = {"about": about, "seconds": round(time.monotonic() - began, 3)}
        moved = next((figure for figure in came.found if _way(figure) != self._ways.get(_id(figure))), None)
        if moved and not came.failure:
            return Trial(setting, failed=f"{_id(moved)} took another path: {_way(moved)}", **common)
        trial = runs.trial(setting, cases, came, {_id(figure): figure.value for figure in came.found})
        return replace(trial, **common)

    def _measured(self, setting: Setting) -> TrialFigures:
        options = {"rounds": 1, "seconds": SECONDS, "network": self.wanted.network, "interface": self.wanted.interface}
        given = {name: value for name, value in options.items() if value}
        item = kernel_settings.item("tcp", given, kernel_settings.written(self.knobs, setting))
        return runs.measured(self._targets, [item], {}, self._how, self._connection)

    def provenance(self) -> Mapping[str, Any]:
        """Return the hosts and conditions of the result."""
        return {
            "hosts": sorted(target.name for target in self._targets),
            "kernel": kernel_settings.common(self._facts, "host.kernel"),
            "defaults": {
                **{name: kernel_settings.common(self._facts, f"sysctl.{name}") for name in ALWAYS},
                **{name: kernel_settings.optional(self._facts, f"sysctl.{name}") for name in OPTIONAL},
            },
            "ways": self._ways,
            "objective": self.wanted.objective,
        }


def knobs(facts: Mapping[str, HostFacts | str]) -> tuple[Knob, ...]:
    """Return the choices for these hosts without the current values. Raise BenchError if the hosts differ."""
    found = [_buffers(facts), _congestion(facts)]
    for name, choices, check in ((BACKLOG, BACKLOGS, "netdev-backlog-small"), (BUDGET, BUDGETS, "")):
        now = kernel_settings.optional(facts, f"sysctl.{name}")
        if now is not None:
            found.append(_number(name, tuple(each for each in choices if each != now), (check,) if check else ()))
    return tuple(knob for knob in found if knob.parameter.choices)


def _buffers(facts: Mapping[str, HostFacts | str]) -> Knob:
    now = {name: kernel_settings.common(facts, f"sysctl.{name}") for name in (RMEM, WMEM)}
    choices = tuple(
        word
        for word, size in BUFFERS.items()
        if any(sizes[2] != size for sizes in now.values()) and all(size >= sizes[1] for sizes in now.values())
    )

    def files(choice: Any) -> dict[str, str]:
        return {sysctl.path_of(name): f"{sizes[0]} {sizes[1]} {BUFFERS[choice]}" for name, sizes in now.items()}

    checks = ("tcp-rmem-below-bandwidth", "tcp-wmem-below-bandwidth")
    return Knob(Parameter("tcp_buffers", choices, IP), files, checks)


def _congestion(facts: Mapping[str, HostFacts | str]) -> Knob:
    now = kernel_settings.common(facts, f"sysctl.{CONGESTION}")
    available = str(kernel_settings.common(facts, f"sysctl.{AVAILABLE}")).split()
    choices = tuple(each for each in WORTH_TRYING if each in available and each != now)
    path = sysctl.path_of(CONGESTION)
    parameter = Parameter("congestion_control", choices, IP)
    return Knob(parameter, lambda choice: {path: str(choice)}, ("congestion-control-unusual",))


def _number(name: str, choices: tuple[int, ...], checks: tuple[str, ...]) -> Knob:
    path = sysctl.path_of(name)
    return Knob(Parameter(name.rpartition(".")[2], choices, NET), lambda choice: {path: str(choice)}, checks)


def _id(figure: Figure) -> str:
    return f"{figure.metric} {figure.subject}"


def _way(figure: Figure) -> str:
    """Return the actual address and interface of a stream."""
    return f"{figure.about.get('address')} by {figure.about.get('interface')}"


def _observed(figure: Figure) -> dict[str, Any]:
    return {name: figure.about.get(name) for name in ("retransmitted", "congestion", "drops") if name in figure.about}
