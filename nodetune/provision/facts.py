"""Facts of a host as provisioning reads them: what cannot be read is a refusal, never a guess. Pure."""

from typing import Any

from nodetune.api.derived import lookup
from nodetune.api.facts_view import FactsView, FactUnreadError
from nodetune.api.model import HostFacts


class HostRefusedError(Exception):
    """The reason why a host is left alone, and what to do. `unknown`: a fact is missing."""

    def __init__(self, reason: str, advice: str = "", *, unknown: bool = False) -> None:
        super().__init__(f"{reason}: {advice}" if advice else reason)
        self.unknown = unknown


class ProvisionFacts:
    """The facts that are decided on. Where one cannot be read, nothing is decided."""

    def __init__(self, facts: HostFacts) -> None:
        self._facts = facts

    def __call__(self, name: str, otherwise: Any = None) -> Any:
        """Return the value of a fact, `otherwise` if it is absent. Raise HostRefusedError."""
        try:
            return FactsView(self._facts, (name,), lookup).get(name, otherwise)
        except FactUnreadError as problem:
            raise HostRefusedError(f"cannot be read: {problem}", "run again with --become", unknown=True) from None
