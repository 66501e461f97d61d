"""The request of `nodetune audit`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nodetune.foundation.request import RequestError, built, one_of
from nodetune.hosts.connection_options import ConnectionOptions

if TYPE_CHECKING:
    from nodetune.audit.selection import Selection

FAIL_ON = ("critical", "high", "medium", "low", "info", "never")
CACHE_MINUTES = 60
AGAINST = ("checklist", "settings", "clustermax", "ai-cloud", "health-validation")
"""The scorecards: nodetune/data/scorecards/."""


@dataclass(frozen=True)
class AuditRequest:
    """Judge hosts or saved facts. `max_age` is in seconds; `history` is a file or a URL, `notify` a URL."""

    connection: ConnectionOptions = built()
    selection: Selection = built()
    facts_path: Path | None = None
    cache: Path | None = None
    max_age: int | None = None
    cohort: str = "gpu"
    reference: str | None = None
    no_compare: bool = False
    history: str = ""
    notify: str = ""
    fail_on: str = one_of("medium", FAIL_ON)
    against: str | None = one_of(None, AGAINST)

    def __post_init__(self) -> None:
        """Raise RequestError."""
        if self.cache and self.facts_path:
            raise RequestError("--cache cannot be used with --facts, which does not probe hosts")
        if self.max_age and not (self.cache or self.facts_path):
            raise RequestError("--max-age needs --facts or --cache")
        if self.reference and self.no_compare:
            raise RequestError("--reference cannot be used with --no-compare")

    @property
    def compared(self) -> list[str]:
        """The options that say how hosts are compared, for proposed commands."""
        by = ["--cohort", self.cohort] if self.cohort != AuditRequest.cohort else []
        against = ["--reference", self.reference] if self.reference else []
        return [*by, *against, *(["--no-compare"] if self.no_compare else [])]


@dataclass(frozen=True)
class CollectRequest:
    """Collect the facts that judging hosts takes."""

    connection: ConnectionOptions = built()
    selection: Selection = built()


@dataclass(frozen=True)
class SelectionRequest:
    """Work with checks, not with hosts."""

    selection: Selection = built()
