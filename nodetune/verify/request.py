"""The request of `nodetune verify`."""

from dataclasses import dataclass
from pathlib import Path

from nodetune.foundation.request import RequestError, built, limited, part
from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.verify.catalogue import of_scope
from nodetune.verify.suites import SuiteRequest


@dataclass(frozen=True)
class VerifyRequest:
    """Measure hosts and judge the figures."""

    connection: ConnectionOptions = built()
    measure: SuiteRequest = part(SuiteRequest)
    allow_busy: bool = False
    history: str = ""
    notify: str = ""
    baseline: Path | None = None
    save_baseline: Path | None = None
    find_slow: bool = False
    leaf: tuple[str, ...] = ()
    expect: float | None = limited(None, 0.001, whole=False)
    more_rounds: int = limited(0, 0, 100)
    round_seconds: float = limited(60.0, 10.0, 600.0, whole=False)

    def __post_init__(self) -> None:
        """Raise RequestError."""
        measure = self.measure
        self._check_find_slow()
        if (
            measure.network
            and not self.find_slow
            and not measure.pairs
            and not set(of_scope("pair")) & set(measure.only)
        ):
            raise RequestError("--network needs --pairs")

    def _check_find_slow(self) -> None:
        measure = self.measure
        if not self.find_slow and (self.leaf or self.expect or self.more_rounds):
            raise RequestError("--leaf, --expect and --more-rounds need --find-slow")
        other = measure.only or measure.pairs or measure.multi_node or measure.disk or measure.require
        if self.find_slow and (other or self.baseline or self.save_baseline):
            raise RequestError(
                "--find-slow chooses what it measures: use it without --only, --require, --disk, --pairs, --multi-node "
                "and --baseline"
            )

    @property
    def judged(self) -> list[str]:
        """The options that select busy hosts and the baseline, for proposed commands."""
        baseline = ["--baseline", str(self.baseline)] if self.baseline else []
        return [*baseline, *(["--allow-busy"] if self.allow_busy else [])]
