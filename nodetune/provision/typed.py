"""What was typed, for the command that takes up one host where it stopped. Pure."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

OLDER = "OLDER.lock"
"""Stands in a command for a lock whose name nobody told."""


@dataclass(frozen=True)
class Typed:
    """The options of this run that the next one takes again. `named`: hosts were named (-i), so the next command names its own."""

    options: str
    lock: str
    named: bool = True

    def command(self, host: str, lock: str = "") -> str:
        """For this host alone, whichever hosts this run was about: the others may be at work."""
        only = ["-l", host] if self.named else []
        return f"nodetune provision {shlex.join([*shlex.split(self.options), '--lock', lock or self.lock, *only])}"
