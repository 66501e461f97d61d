"""The view of a host for a check: only the facts that it declared."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from nodetune.api.model import Absent, Each, Fact, HostFacts, Unread, Value


class FactAbsentError(Exception):
    """The requested thing does not exist on this host (absent)."""


class FactUnreadError(Exception):
    """The requested fact could not be read; the text says why."""


class FactUndeclaredError(Exception):
    """A check asked for a fact that it did not declare: a bug in the check."""


class FactsView:
    """Facts by name, limited to the declared ones.

    `facts[name]` is the value; a fact over several subjects is a dict of subject → value without the absent ones.
    Values are cached, so a check may read the same fact in a loop.
    Raise FactAbsentError if the fact is absent, FactUnreadError if it (or one subject of it) could not be read.
    """

    def __init__(
        self, host: HostFacts, declared: Iterable[str], lookup: Callable[[HostFacts, str], Fact] = HostFacts.get
    ) -> None:
        self._host = host
        self._declared = frozenset(declared)
        self._lookup = lookup
        self._facts: dict[str, Fact] = {}
        self._values: dict[str, Any] = {}

    def fact(self, name: str) -> Fact:
        """Return the fact: Value, Absent, Unread or Each."""
        if name not in self._declared:
            raise FactUndeclaredError(f"the fact {name} is not among the declared needs")
        if name not in self._facts:
            self._facts[name] = self._lookup(self._host, name)
        return self._facts[name]

    @property
    def read(self) -> Iterable[str]:
        """Return the names of the facts that were asked for."""
        return self._facts

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            self._values[name] = self._read(name)
        found = self._values[name]
        if isinstance(found, (FactAbsentError, FactUnreadError)):
            raise found
        return found

    def _read(self, name: str) -> Any:
        """Return the value, or the error with the reason."""
        try:
            return value_of(name, self.fact(name))
        except (FactAbsentError, FactUnreadError) as missing:
            return missing.with_traceback(None)

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value, or `default` if the fact is absent. Raise FactUnreadError if it is unread."""
        try:
            return self[name]
        except FactAbsentError:
            return default

    def readable(self, name: str, default: Any = None) -> Any:
        """Return the value, or `default` if the fact is absent or unread.

        Use it only for details of a message.
        """
        try:
            return self[name]
        except (FactAbsentError, FactUnreadError):
            return default


def value_of(name: str, fact: Fact) -> Any:
    """Return the value of a fact. Raise FactAbsentError or FactUnreadError if there is none."""
    if isinstance(fact, Value):
        return fact.value
    if isinstance(fact, Absent):
        raise FactAbsentError(fact.reason)
    if isinstance(fact, Unread):
        raise FactUnreadError(f"{name}: {fact.reason}")
    if isinstance(fact, Each):
        return {
            subject: each.value if isinstance(each, Value) else value_of(f"{name} of {subject}", each)
            for subject, each in fact.of.items()
            if not isinstance(each, Absent)
        }
    raise TypeError(f"{name} is not a fact: {fact!r}")
