"""Most hosts of a fleet are alike: equal facts become one object, and what follows from the same facts is worked out once. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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


class ResultCache:
    """What was worked out from facts of these names. It must depend on nothing else of the host."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = tuple(sorted(names))
        self._known: dict[tuple[int, ...], tuple[list[Fact | None], Any]] = {}

    def of(self, host: HostFacts, work: Callable[[HostFacts], Result]) -> Result:
        """Return `work(host)`, from memory if a host with the very same facts was done before."""
        facts = [*map(host.facts.get, self._names)]
        key = tuple(map(id, facts))
        known = self._known.get(key)
        if known is not None:
            said: Result = known[1]
            return said
        said = work(host)
        if len(self._known) < FORMS and all(fact is not None for fact in facts):
            self._known[key] = facts, said  # the facts are kept, so that no other object ever gets their identity
        return said
