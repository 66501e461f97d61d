"""How far a phase of a run is: what every display of its progress shows."""

import time
from typing import Any

from nodetune.foundation import text as plain_text


class PhaseState:
    """One phase of a run on hosts.

    `seconds` is how long it takes at most, where that is known before; `stages` how many parts it has, where those are
    counted and not hosts. `outcomes` are those of the hosts that are done, `begun` the stages; `lost` says of hosts that
    Ansible lost what happened; `latest` when a host or stage was last done.
    """

    def __init__(self, phase: str, hosts: int, seconds: float = 0.0, stages: int = 0) -> None:
        self.phase, self.hosts, self.seconds, self.stages = phase, hosts, seconds, stages
        self.outcomes: dict[str, str] = {}
        self.begun: list[str] = []
        self.lost: dict[str, tuple[str, str]] = {}
        self.latest = 0.0
        self._since = time.monotonic()

    @property
    def failed(self) -> int:
        return sum(outcome != "ok" for outcome in self.outcomes.values())

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._since

    def counts(self) -> str:
        """Describe the progress."""
        if self.stages:
            return f"stage {len(self.begun)} of {self.stages}"
        failed = f", {self.failed} not ok" if self.failed else ""
        return f"{len(self.outcomes)} of {plain_text.count(self.hosts, 'host')}{failed}"


class Display:
    """Where progress goes. This one shows nothing."""

    def _ignore(self, *_: Any) -> None:
        return

    started = stage = step = host = finished = _ignore
