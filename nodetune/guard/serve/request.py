"""The request of `nodetune guard serve`."""

from dataclasses import dataclass
from pathlib import Path

from nodetune.foundation.request import RequestError
from nodetune.guard.deploy.paths import POLICY, RUN

MAX_PATH_LENGTH = 107
"""Of a Unix socket (unix(7))."""


@dataclass(frozen=True)
class ServeRequest:
    """Answer at the Unix socket `unix`, by the guard's `policy`. `state` is the guard's folder for what it keeps."""

    unix: Path
    policy: Path = Path(POLICY)
    state: Path = Path(RUN)

    def __post_init__(self) -> None:
        """Raise RequestError."""
        if not self.unix.is_absolute() or len(str(self.unix)) > MAX_PATH_LENGTH:
            raise RequestError(
                f"--unix is {str(self.unix)!r}: give a whole path of at most {MAX_PATH_LENGTH} characters"
            )
