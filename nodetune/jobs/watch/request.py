"""The request of `nodetune watch`."""

from dataclasses import dataclass
from pathlib import Path

from nodetune.foundation.request import RequestError, built, limited
from nodetune.hosts.connection_options import ConnectionOptions


@dataclass(frozen=True)
class WatchRequest:
    """Watch hosts for some seconds, or judge saved facts of an earlier watch."""

    connection: ConnectionOptions = built()
    seconds: int = limited(10, 2, 600)
    facts_path: Path | None = None
    save: Path | None = None
    history: str = ""
    notify: str = ""

    def __post_init__(self) -> None:
        """Raise RequestError."""
        if self.save and self.facts_path:
            raise RequestError("--save cannot be used with --facts, which does not watch hosts")
