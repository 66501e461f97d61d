"""The requests of the commands that plan, change and restore hosts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nodetune.foundation.request import RequestError, built, limited
from nodetune.hosts.target import ConnectionOptions

if TYPE_CHECKING:
    from nodetune.audit.selection import Selection


@dataclass(frozen=True)
class ApplyRequest:
    """Fix what an audit of the hosts finds. Waits are in minutes."""

    connection: ConnectionOptions = built()
    selection: Selection = built()
    max_disruption: str = "new sessions"
    reboot: bool = False
    reboot_wait: float = limited(30, 0.5, 1440, whole=False)
    drain: str | None = None
    drain_wait: float = limited(60, 0, 10080, whole=False)
    assume_drained: bool = False
    batch: str = ""
    canary: int = limited(1, 0)
    max_failures: int = limited(0, 0)
    runs_folder: Path | None = None

    def __post_init__(self) -> None:
        """Raise RequestError."""
        if self.reboot and self.max_disruption != "reboot":
            raise RequestError("--reboot needs --max-disruption reboot")

    @property
    def reboot_seconds(self) -> float:
        return self.reboot_wait * 60

    @property
    def drain_seconds(self) -> float:
        return self.drain_wait * 60


@dataclass(frozen=True)
class PlanRequest:
    """Plan fixes for hosts or saved facts."""

    connection: ConnectionOptions = built()
    selection: Selection = built()
    facts_path: Path | None = None
