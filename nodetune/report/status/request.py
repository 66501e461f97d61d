"""The request of `nodetune status`."""

from dataclasses import dataclass
from pathlib import Path

from nodetune.audit.request import FAIL_ON
from nodetune.foundation.request import one_of
from nodetune.report.status.standing import DAY


@dataclass(frozen=True)
class StatusRequest:
    """Report the status of hosts. `stale` and `since` are in seconds; `profiles` and `site` are for proposed commands."""

    history: str = ""
    inventory: str | None = None
    limit: str | None = None
    profiles: tuple[str, ...] = ()
    site: tuple[Path, ...] = ()
    stale: int = 7 * DAY
    since: int = 30 * DAY
    fail_on: str = one_of("medium", FAIL_ON)
