"""Compute from one fact per GPU: an unreadable GPU affects only its own verdict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nodetune.api import Absent, Each, Fact, FactsView, Unread, Value


def each(facts: FactsView, name: str, compute: Callable[[Any], Any]) -> Fact:
    """Apply `compute` to every value; a GPU whose fact is absent or unread stays so."""
    fact = facts.fact(name)
    if isinstance(fact, Each):
        return Each({gpu: _computed(one, compute) for gpu, one in fact.of.items()})
    return fact


def _computed(one: Any, compute: Callable[[Any], Any]) -> Any:
    if not isinstance(one, Value):
        return one
    found = compute(one.value)
    return found if isinstance(found, (Value, Absent, Unread)) else Value(found)
