"""The command that resumes one host where it stopped, from the typed options. Pure."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

OLDER = "OLDER.lock"
"""A placeholder in a command for a lock with an unknown name."""


@dataclass(frozen=True)
class ResumeCommand:
    """The options of this run that the next one takes again. `named`: hosts were named (-i), so the next command names its own."""

    options: str
    lock: str
    named: bool = True

    def command(self, host: str, lock: str = "") -> str:
        """Return the command for this host alone, whichever hosts this run was about: the others may be busy."""
        only = ["-l", host] if self.named else []
        return f"nodetune provision {shlex.join([*shlex.split(self.options), '--lock', lock or self.lock, *only])}"
