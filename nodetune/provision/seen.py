"""Facts of a host as provisioning reads them: what cannot be read is a refusal, never a guess. Pure."""

from __future__ import annotations

from typing import Any

from nodetune.derived import lookup
from nodetune.model import HostFacts
from nodetune.view import Unreadable, View


class Refused(Exception):
    """Why a host is left alone, and what to do about it. `unknown`: for want of a fact."""

    def __init__(self, reason: str, advice: str = "", *, unknown: bool = False) -> None:
        super().__init__(f"{reason}: {advice}" if advice else reason)
        self.unknown = unknown


class Seen:
    """The facts that are decided on. Where one cannot be read, nothing is decided."""

    def __init__(self, facts: HostFacts) -> None:
        self._facts = facts

    def __call__(self, name: str, otherwise: Any = None) -> Any:
        """A fact's value, `otherwise` where it is absent. Raises Refused."""
        try:
            return View(self._facts, (name,), lookup).get(name, otherwise)
        except Unreadable as problem:
            raise Refused(f"not known: {problem}", "run it again, with --become", unknown=True) from None
