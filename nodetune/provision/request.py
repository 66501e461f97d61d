"""The requests of the commands that install and upgrade hosts."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nodetune.foundation.request import RequestError, built
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.provision import STAGES
from nodetune.remediation.request import ApplyRequest, ChangeRequest

OLDER = "OLDER.lock"
"""A placeholder in a command for a lock with an unknown name."""


@dataclass(frozen=True)
class ResumeCommand:
    """The options of this run that the next one takes again. `named`: hosts were named (-i), so the next command names its own."""

    options: Sequence[str]
    lock: str
    named: bool = True

    def command(self, host: str, lock: str = "") -> str:
        """Return the command for this host alone, whichever hosts this run was about: the others may be busy."""
        only = ["-l", host] if self.named else []
        return f"nodetune provision {shlex.join([*self.options, '--lock', lock or self.lock, *only])}"


@dataclass(frozen=True)
class ProvisionRequest(ChangeRequest):
    """Bring hosts to the versions of a lock, from one stage on, or by only one; or upgrade hosts in service."""

    lock: Path = Path()
    first: str | None = None
    only: str | None = None
    upgrade: bool = False
    history: str = ""

    def __post_init__(self) -> None:
        """Raise RequestError, BatchError."""
        super().__post_init__()
        if self.upgrade and (self.first or self.only):
            raise RequestError("--upgrade cannot be used with --from or --only")
        if self.first and self.only:
            raise RequestError("--from cannot be used with --only")

    def runs(self, stage: str) -> bool:
        """Return whether a stage runs. The preflight always does: all others need it."""
        if stage == "preflight" or not (self.first or self.only):
            return True
        return stage == self.only if self.only else STAGES.index(stage) >= STAGES.index(str(self.first))

    @property
    def tuning(self) -> ApplyRequest:
        """The request of the stage `tune`: anything, on all hosts at once."""
        return ApplyRequest(
            self.connection,
            self.selection,
            reboot_wait=self.reboot_wait,
            assume_drained=self.assume_drained,
            canary=0,
            max_disruption="reboot",
            reboot=True,
        )

    @property
    def resume_command(self) -> ResumeCommand:
        """The options of this run for the next one, without its limit: a proposed command names one host."""
        connection = replace(self.connection, limit=None, failed_of="")
        drain = ["--drain", self.drain] if self.drain else []
        drained = ["--assume-drained"] if self.assume_drained else []
        words = [*connection.words, *self.selection.words, *drain, *drained]
        return ResumeCommand(words, str(self.lock), bool(connection.inventory))


@dataclass(frozen=True)
class LockRequest:
    """Ask hosts which versions they would install. `check`: change no lock file, only compare."""

    connection: ConnectionOptions = built()
    site: tuple[Path, ...] = ()
    driver: str | None = None
    output: Path | None = None
    check: bool = False

    def __post_init__(self) -> None:
        """Raise RequestError."""
        if self.check and self.output is None:
            raise RequestError("--check needs a lock file: name it with -o")
