"""What a check sees of a host: the facts that it declared, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from nodetune.model import Absent, Each, Fact, HostFacts, Unread, Value


class Missing(Exception):
    """The thing that is asked for is not on this host (absent)."""


class Unreadable(Exception):
    """The fact that is asked for could not be read; the text says why."""


class Undeclared(Exception):
    """A check asked for a fact that it did not declare: a bug in the check."""


class View:
    """Facts by name, limited to the declared ones.

    `facts[name]` is the value; a fact over several subjects is a dict of subject → value without the absent ones.
    Raises Missing where the fact is absent, Unreadable where it (or one subject of it) could not be read.
    """

    def __init__(
        self, host: HostFacts, declared: Iterable[str], lookup: Callable[[HostFacts, str], Fact] = HostFacts.get
    ) -> None:
        self._host = host
        self._declared = frozenset(declared)
        self._lookup = lookup

    def fact(self, name: str) -> Fact:
        """The fact itself: Value, Absent, Unread or Each."""
        if name not in self._declared:
            raise Undeclared(f"the fact {name} is not among the declared needs")
        return self._lookup(self._host, name)

    def __getitem__(self, name: str) -> Any:
        return value_of(name, self.fact(name))

    def get(self, name: str, default: Any = None) -> Any:
        """The value, or `default` where the fact is absent. Still raises Unreadable."""
        try:
            return self[name]
        except Missing:
            return default

    def readable(self, name: str, default: Any = None) -> Any:
        """The value, or `default` where the fact is absent or unread: only for what merely enriches a message."""
        try:
            return self[name]
        except (Missing, Unreadable):
            return default


def value_of(name: str, fact: Fact) -> Any:
    """The value inside a fact. Raises Missing or Unreadable."""
    match fact:
        case Value(value):
            return value
        case Absent(reason):
            raise Missing(reason)
        case Unread(reason):
            raise Unreadable(f"{name}: {reason}")
        case Each(of):
            return {
                subject: value_of(f"{name} of {subject}", each)
                for subject, each in of.items()
                if not isinstance(each, Absent)
            }
    raise TypeError(f"{name} is not a fact: {fact!r}")
