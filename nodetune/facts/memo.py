"""Most hosts of a fleet are alike: equal facts become one object, and what follows from the same facts is worked out once. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from nodetune.api.model import Fact, HostFacts

FORMS = 64
"""So many forms of one thing are kept; what differs on every host (serial numbers, temperatures) stops being kept there."""

NAMES, LONGEST, MOST = 4096, 64 << 10, 64 << 20
"""So many names are known, contents of so many signs, and all of them together: some ten times what real fleets have.

A hostile host may send any number: where there would be more, all is forgotten, and comes again with the next hosts.
"""

Result = TypeVar("Result")


class InternPool:
    """Things by name and content: equal ones are made once."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, Any]] = {}
        self._size = 0

    def of(self, name: str, content: str, make: Callable[[str, str], Result]) -> Result:
        """Return `make(name, content)`, from memory if the same content was made before."""
        forms = self._known.get(name)
        known: Result | None = forms.get(content) if forms else None
        if known is None:
            known = make(name, content)
            if len(content) <= LONGEST and (not forms or len(forms) < FORMS):
                self._keep(name, content, known)
        return known

    def _keep(self, name: str, content: str, made: Any) -> None:
        if len(self._known) >= NAMES or self._size + len(content) > MOST:
            self._known.clear()
            self._size = 0
        self._known.setdefault(name, {})[content] = made
        self._size += len(content)


def identities(host: HostFacts) -> dict[str, int]:
    """Return which object each fact of a host is: equal facts of several hosts are one object."""
    return {name: id(fact) for name, fact in host.facts.items()}


class ResultCache:
    """What was worked out from facts of these names. It must depend on nothing else of the host."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = tuple(sorted(names))
        self._known: dict[tuple[int | None, ...], tuple[list[Fact | None], Any]] = {}

    def of(self, host: HostFacts, known_as: Mapping[str, int], work: Callable[[HostFacts], Result]) -> Result:
        """Return `work(host)`, from memory if a host with the very same facts was done before. `known_as`: its `identities`."""
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
