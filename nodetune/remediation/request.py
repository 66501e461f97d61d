"""The requests of the commands that plan, change and restore hosts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nodetune.api.model import DISRUPTIONS, disruption_name
from nodetune.foundation.request import RequestError, built, limited
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.remediation import batches

if TYPE_CHECKING:
    from nodetune.audit.selection import Selection

BY_NAME = {disruption_name(value): value for value in DISRUPTIONS}
"""Disruptions by their names on the command line."""


@dataclass(frozen=True)
class ChangeRequest:
    """Change hosts: when, in which order, and where that is recorded. Waits are in minutes."""

    connection: ConnectionOptions = built()
    selection: Selection = built()
    reboot_wait: float = limited(30, 0.5, 1440, whole=False)
    drain: str | None = None
    drain_wait: float = limited(60, 0, 10080, whole=False)
    assume_drained: bool = False
    batch: str = ""
    canary: int = limited(1, 0)
    runs_folder: Path | None = None

    def __post_init__(self) -> None:
        """Raise RequestError, BatchError."""
        batches.size(self.batch, 1)
        if self.drain == "kubernetes" and self._transport not in ("kubernetes", ""):
            raise RequestError("--drain kubernetes needs --transport kubernetes")

    @property
    def _transport(self) -> str:
        """The transport; empty while the connection is not built."""
        return self.connection.transport if self.connection else ""

    @property
    def reboot_seconds(self) -> float:
        return self.reboot_wait * 60

    @property
    def drain_seconds(self) -> float:
        return self.drain_wait * 60


@dataclass(frozen=True)
class ApplyRequest(ChangeRequest):
    """Fix what an audit of the hosts finds. `verify`: measure before and after; the fields below it say what, as for verify."""

    max_disruption: str = "new-sessions"
    reboot: bool = False
    max_failures: int = limited(0, 0)
    verify: bool = False
    suite: str | None = None
    repeat: int | None = None
    disk: str = ""
    pairs: bool = False
    network: str = ""

    def __post_init__(self) -> None:
        """Raise RequestError, BatchError."""
        super().__post_init__()
        if self.reboot and self.max_disruption != "reboot":
            raise RequestError("--reboot needs --max-disruption reboot")
        if not self.verify and (self.suite or self.repeat or self.disk or self.pairs):
            raise RequestError("--suite, --repeat, --disk and --pairs need --verify")
        if self.network and not self.pairs:
            raise RequestError("--network needs --pairs")
        if self.pairs and (self.canary == 1 or self.batch == "1"):
            raise RequestError("--pairs measures between hosts of one batch: --canary and --batch need 2 or more")
        if self.verify and self._transport == "kubernetes":
            raise RequestError("--verify measures over SSH or on this machine, not in pods")

    @property
    def disruption(self) -> str:
        """The maximum disruption, as fixes have it."""
        return BY_NAME[self.max_disruption]


@dataclass(frozen=True)
class PlanRequest:
    """Plan fixes for hosts or saved facts, and the files of the scheduler: by the fabric, if it is known."""

    connection: ConnectionOptions = built()
    selection: Selection = built()
    facts_path: Path | None = None
    scheduler_diff: Path | None = None
    fabric: tuple[Path, ...] = ()
    max_disruption: str = disruption_name(DISRUPTIONS[-1])

    def __post_init__(self) -> None:
        """Raise RequestError."""
        if self.fabric and not self.scheduler_diff:
            raise RequestError("--fabric needs --scheduler-diff FILE, which gets the topology")


@dataclass(frozen=True)
class RollbackRequest:
    """Undo `run`, or every run that changed the hosts `every`. `force` also undoes what someone changed since."""

    run: str | None = None
    every: str | None = None
    force: bool = False
    drain: str | None = None
    drain_wait: float = limited(60, 0, 10080, whole=False)
    assume_drained: bool = False
    runs_folder: Path | None = None

    def __post_init__(self) -> None:
        """Raise RequestError."""
        if (self.run is None) == (self.every is None):
            raise RequestError("give either RUN or --all HOST (see nodetune runs)")

    def on(self, connection: ConnectionOptions) -> ChangeRequest:
        """Return how hosts are changed that are reached so. Raise RequestError."""
        return ChangeRequest(
            connection, drain=self.drain, drain_wait=self.drain_wait, assume_drained=self.assume_drained
        )
