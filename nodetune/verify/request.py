"""The request of `nodetune verify`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nodetune.foundation.request import RequestError, built, part
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.verify.catalogue import of_scope
from nodetune.verify.suites import SuiteRequest


@dataclass(frozen=True)
class VerifyRequest:
    """Measure hosts and judge the figures."""

    connection: ConnectionOptions = built()
    measure: SuiteRequest = part(SuiteRequest)
    allow_busy: bool = False
    baseline: Path | None = None
    save_baseline: Path | None = None

    def __post_init__(self) -> None:
        """Raise RequestError."""
        measure = self.measure
        if measure.network and not measure.pairs and not set(of_scope("pair")) & set(measure.only):
            raise RequestError("--network needs --pairs")

    @property
    def judged(self) -> list[str]:
        """The options that select busy hosts and the baseline, for proposed commands."""
        baseline = ["--baseline", str(self.baseline)] if self.baseline else []
        return [*baseline, *(["--allow-busy"] if self.allow_busy else [])]
