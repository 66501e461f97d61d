"""The request of `nodetune readmit`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nodetune.foundation.request import RequestError, built, limited
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.verify.suites import MAX_LOAD_SECONDS, MIN_LOAD_SECONDS, SuiteRequest

if TYPE_CHECKING:
    from nodetune.audit.selection import Selection

NOBODY = "none"


@dataclass(frozen=True)
class ReadmitRequest:
    """Prove a host and resume it. `neighbours`: hosts for find-slow (empty: chosen; `none`: no find-slow)."""

    connection: ConnectionOptions = built()
    selection: Selection = built()
    host: str = ""
    before: Path | None = None
    history: str = ""
    baseline: Path | None = None
    neighbours: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    load_seconds: int = limited(600, MIN_LOAD_SECONDS, MAX_LOAD_SECONDS)
    evidence: Path | None = None
    key: Path | None = None

    def __post_init__(self) -> None:
        """Raise RequestError."""
        if self.host in self.neighbours:
            raise RequestError(f"--with {self.host}: name other hosts than the one that is readmitted")
        if NOBODY in self.neighbours and len(self.neighbours) > 1:
            raise RequestError(f"--with {NOBODY} cannot be used with names of hosts")

    def to(self, *hosts: str) -> ConnectionOptions:
        """Return the way to these hosts alone. Without an inventory, they are reached by their names."""
        names = ",".join(hosts)
        return replace(self.connection, inventory=self.connection.inventory or names, limit=names)

    @property
    def measured(self) -> SuiteRequest:
        """The measurements: the quick suite, or `only` these, and all GPUs under load."""
        return SuiteRequest("full" if self.only else "quick", self.only, load_seconds=self.load_seconds)
