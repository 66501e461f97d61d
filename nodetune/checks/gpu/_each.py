"""What is computed from one fact for each GPU, so that an unreadable GPU costs only its own verdict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nodetune.model import Each, Fact, Value
from nodetune.view import View


def each(facts: View, name: str, compute: Callable[[Any], Any]) -> Fact:
    """`compute` of every value; a GPU whose fact is absent or unread stays so."""
    fact = facts.fact(name)
    if isinstance(fact, Each):
        return Each({gpu: _computed(one, compute) for gpu, one in fact.of.items()})
    return fact


def _computed(one: Any, compute: Callable[[Any], Any]) -> Any:
    if not isinstance(one, Value):
        return one
    found = compute(one.value)
    return found if isinstance(found, Fact) else Value(found)
