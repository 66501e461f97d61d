"""Small modules that are independent of GPUs and hosts."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")


class UserError(ValueError):
    """Bad input: its text is one line for the user (what, where, what to do). The command exits with code 2, or its `code`."""


def by_key(pairs: Iterable[tuple[Key, Item]]) -> dict[Key, list[Item]]:
    """Return key → the values of all pairs with it, in the order of the pairs."""
    found: dict[Key, list[Item]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found
