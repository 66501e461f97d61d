"""The request of `nodetune slow`."""

import re
from dataclasses import dataclass
from pathlib import Path

from nodetune.foundation import text
from nodetune.foundation.request import RequestError, limited

PORT = 28028
"""NCCL_RAS_ADDR is localhost with this port unless it is set."""

ADDRESS = re.compile(r"(?:\[([0-9A-Fa-f:.%\w]{2,60})\]|([A-Za-z0-9._-]{1,253}))(?::(\d{1,5}))?")


@dataclass(frozen=True)
class SlowRequest:
    """Judge what NCCL's Inspector wrote of jobs, or ask the RAS service of a running job."""

    inspector: Path | None = None
    ras: str = ""
    pause: float = limited(5.0, 0.0, 600.0, whole=False)
    """Seconds between two questions: counts that grow belong to a job that runs."""

    history: str = ""
    notify: str = ""

    def __post_init__(self) -> None:
        """Raise RequestError."""
        if (self.inspector is None) == (not self.ras):
            raise RequestError("give either --inspector DIR, for jobs that ran, or --ras HOST, for a job that hangs")
        if self.ras:
            address(self.ras)


def address(typed: str) -> tuple[str, int]:
    """Return host and port of HOST, HOST:PORT or [IPv6]:PORT. Raise RequestError."""
    match = ADDRESS.fullmatch(typed)
    port = int(match[3] or PORT) if match else 0
    if not match or not 0 < port < 65536:
        raise RequestError(f"--ras {text.plain(typed)} is not HOST, HOST:PORT or [IPv6]:PORT")
    return match[1] or match[2], port
