"""The request of `nodetune report`."""

from dataclasses import dataclass, replace
from pathlib import Path

from nodetune.foundation.request import built
from nodetune.hosts.connection_options import ConnectionOptions


@dataclass(frozen=True)
class SupportRequest:
    """Gather what a vendor's support needs about one host. `facts_path`: facts that were saved before a reset."""

    connection: ConnectionOptions = built()
    host: str = ""
    facts_path: Path | None = None
    measurements: tuple[Path, ...] = ()
    history: str = ""
    runs_folder: Path | None = None
    nameless: bool = False
    bundle: Path | None = None
    key: Path | None = None

    @property
    def way(self) -> ConnectionOptions:
        """The way to the host alone. Without an inventory, it is reached by its name."""
        return replace(self.connection, inventory=self.connection.inventory or self.host, limit=self.host)
