"""The recovery action that the driver requests for a GPU, and whether now is the time for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Union

from nodetune.api import Absent, Each, Fact, FactsView, Unread, Value

DUE = "drain and reset the GPU"
NOW = f"{DUE}, which no program uses now"
PROCESSES = ("gpu.compute_running_processes", "gpu.mps_compute_running_processes")
NEEDS = ("gpu.recovery_action", "gpu.architecture", *PROCESSES)
BEFORE_HOPPER = ("kepler", "maxwell", "pascal", "volta", "turing", "ampere", "ada")
"""On their NVSwitch systems, all GPUs are reset together."""

One = Union[Value, Absent, Unread]


def observe(facts: FactsView) -> Fact:
    """Return the action of each GPU: DUE while programs that its reset would end may compute, NOW once none does."""
    fact = facts.fact("gpu.recovery_action")
    if not isinstance(fact, Each):
        return fact
    return Each({gpu: Value(NOW) if one == Value(DUE) and _idle(facts, gpu) else one for gpu, one in fact.of.items()})


def _idle(facts: FactsView, gpu: str) -> bool:
    """Return whether it is known that no program computes on the GPU, or before Hopper on any GPU of the node."""
    alone = any(
        isinstance(one, Value) and one.value not in BEFORE_HOPPER for one in _of(facts, "gpu.architecture", gpu)
    )
    direct, through_mps = (_of(facts, name, gpu if alone else None) for name in PROCESSES)
    by_mps = [one for one in through_mps if not isinstance(one, Absent)]
    return bool(direct) and all(isinstance(one, Value) and not one.value for one in (*direct, *by_mps))


def _of(facts: FactsView, name: str, gpu: str | None) -> Iterable[One]:
    """Return the fact of a GPU, or of all GPUs."""
    fact = facts.fact(name)
    if not isinstance(fact, Each):
        return (fact,)
    return [one for other, one in fact.of.items() if gpu in (None, other)]
