"""The recovery action that the driver requests for a GPU, and whether now is the time for it."""

from __future__ import annotations

from nodetune.api import Absent, Each, Fact, FactsView, Unread, Value
from nodetune.checks.gpu._each import each

DUE = "drain and reset the GPU"
NOW = f"{DUE}, which no program uses now"
PROCESSES = ("gpu.compute_running_processes", "gpu.mps_compute_running_processes")
NEEDS = ("gpu.recovery_action", *PROCESSES)


def observe(facts: FactsView) -> Fact:
    """Return the action of each GPU: DUE while programs of the node may still compute, NOW once none does."""
    return each(facts, "gpu.recovery_action", lambda action: NOW if action == DUE and _idle(facts) else action)


def _idle(facts: FactsView) -> bool:
    """Return whether it is known that no program computes on any GPU of the node."""
    direct, through_mps = (_of(facts.fact(name)) for name in PROCESSES)
    by_mps = [one for one in through_mps if not isinstance(one, Absent)]
    return bool(direct) and all(isinstance(one, Value) and not one.value for one in (*direct, *by_mps))


def _of(fact: Fact) -> list[Value | Absent | Unread]:
    return list(fact.of.values()) if isinstance(fact, Each) else [fact]
