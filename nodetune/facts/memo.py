"""Memos for a fleet of similar hosts: equal facts become one object; results for them are computed once. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from nodetune.api.model import Fact, HostFacts

FORMS = 64
"""Limit for the variants of one fact; beyond it, values that differ on every host (such as serials) are not kept."""

NAMES, MAX_LINE, MAX_BYTES = 4096, 64 << 10, 48 << 20
"""Limits for names, for the length of a line, and for all lines together: about ten times the size of real fleets.

A hostile host may send any number: beyond a limit, the memo is cleared and fills again with the next hosts.
"""

VALUE = 128
"""Bytes that a value of a list or an object takes, however short its text."""

Result = TypeVar("Result")


class InternPool:
    """Objects by name and content, each from one line of a document: equal objects are made once."""

    emptied = 0
    """How often a pool was cleared: then results of its objects are forgotten, too, which would keep all of them."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, Any]] = {}
        self._forms: dict[str, int] = {}
        self._size = 0

    def of(self, line: str, make: Callable[[str], tuple[str, Result]]) -> tuple[str, Result]:
        """Return `make(line)`, a name and an object; from the memo if the same line was read before."""
        known: tuple[str, Result] | None = self._known.get(line)
        if known is None:
            known = make(line)
            self._make_room(line)
            if len(line) <= MAX_LINE and self._forms.get(known[0], 0) < FORMS:
                self._known[line] = known
                self._forms[known[0]] = self._forms.get(known[0], 0) + 1
        return known

    def _make_room(self, line: str) -> None:
        """Count an object, also one that is not kept here: results that were computed from it may keep it."""
        size = 2 * len(line) + VALUE * sum(map(line.count, ",[{"))  # the line and what is made of it
        if len(self._forms) >= NAMES or self._size + size > MAX_BYTES:
            self._known.clear()
            self._forms.clear()
            self._size = 0
            InternPool.emptied += 1
        self._size += size


def identities(host: HostFacts) -> dict[str, int]:
    """Return the identity of each fact's object: equal facts of several hosts are one object."""
    return {name: id(fact) for name, fact in host.facts.items()}


class ResultCache:
    """Results computed from facts of these names. They must depend on nothing else of the host."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = tuple(sorted(names))
        self._known: dict[tuple[int | None, ...], tuple[list[Fact | None], Any]] = {}
        self._emptied = InternPool.emptied

    def of(self, host: HostFacts, known_as: Mapping[str, int], work: Callable[[HostFacts], Result]) -> Result:
        """Return `work(host)`; from the memo if the same facts were done before. `known_as`: its `identities`."""
        if self._emptied != InternPool.emptied:
            self._known.clear()
            self._emptied = InternPool.emptied
        key = tuple(map(known_as.get, self._names))
        if None in key and host.about.get("failed"):  # it says why facts are missing, which the key does not tell
            return work(host)
        known = self._known.get(key)
        if known is not None:
            said: Result = known[1]
            return said
        said = work(host)
        if len(self._known) < FORMS:  # the facts are kept, so that no other object ever gets their identity
            self._known[key] = [*map(host.facts.get, self._names)], said
        return said
