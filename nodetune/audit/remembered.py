"""An audit with a history: looks at hosts go there as they come, and findings get the time from which they are known.

A history that fails ends no audit: that is one warning.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import TracebackType

from nodetune.api.model import HostResult
from nodetune.audit.conclude import concluded
from nodetune.facts.saved import AHEAD_SECONDS
from nodetune.foundation import text
from nodetune.foundation.stage_output import Show
from nodetune.history import trends
from nodetune.history.connection import HistoryError, PlaceError
from nodetune.history.history import BATCH, History
from nodetune.history.snapshot import Sorter


class Remembered:
    """Keeps one audit. Raises PlaceError if its place is not valid for a history."""

    def __init__(self, place: str, show: Show) -> None:
        self._history: History | None = None
        self._show = show
        self._at: dict[str, int] = {}
        try:
            self._history = History(place, show)
        except PlaceError:
            raise
        except HistoryError as problem:
            self._fail(problem)
        self.look_of = Sorter().look

    def __enter__(self) -> Remembered:  # noqa: PYI034  (Python 3.10 has no Self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, _: TracebackType | None
    ) -> None:
        if self._history:
            self._history.close()

    def taken(self, result: HostResult) -> HostResult:
        """Keep the look that a result brings, unless it is from the future; return the result without it."""
        if result.look is None or result.look.at > time.time() + AHEAD_SECONDS:
            return result if result.look is None else replace(result, look=None)
        self._at[result.host] = result.look.at
        if self._history:
            try:
                self._history.take(result.look)
            except HistoryError as problem:
                self._fail(problem)
        return replace(result, look=None)

    def told(self, results: Sequence[HostResult]) -> list[HostResult]:
        """Keep the findings, and return the results with the time since when each is there."""
        if not self._history:
            return list(results)
        try:
            return self._told(results, self._history)
        except HistoryError as problem:
            self._fail(problem)
            return list(results)

    def _told(self, results: Sequence[HostResult], history: History) -> list[HostResult]:
        history.flush()
        looked = [each for each in results if each.host in self._at or each.state != "ok"]
        for first in range(0, len(looked), BATCH):
            history.conclude(concluded(looked[first : first + BATCH], int(time.time())))
        for trend in history.daily(min(max(self._at.values(), default=0), time.time())):
            self._show.warn(f"trend: {trends.sentence(trend)}")
        since = history.since([each.host for each in results])
        done = history.recorded
        self._show.detail(
            f"history: {text.count(done.looks, 'look')}, {text.count(done.changes, 'change')}, {done.late} known already"
        )
        return [self._since(each, since.get(each.host, {})) for each in results]

    def _since(self, result: HostResult, known: Mapping[str, int]) -> HostResult:
        """Return a result with the findings that are older than this look."""
        looked = self._at.get(result.host, 0)
        older = {check: begun for check, begun in known.items() if begun < looked}
        return replace(result, since=older) if older else result

    def _fail(self, problem: HistoryError) -> None:
        if self._history:
            self._history.close()
            self._history = None
        self._show.warn(f"{problem}; the audit continues without it")
