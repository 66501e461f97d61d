"""Keeps figures that were measured. What the history cannot keep ends no measuring."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from nodetune.foundation.stage_output import Show
from nodetune.history.connection import HistoryError
from nodetune.history.history import History
from nodetune.history.snapshot import of_figures

Measured = tuple[str, float | None, Mapping[str, float]]
"""A host, the time of its figures (None: now), and leaf → figure."""


def keep(place: str, measured: Iterable[Measured], show: Show) -> None:
    """Keep the figures of hosts that have any."""
    looks = [of_figures(host, int(at or time.time()), figures) for host, at, figures in measured if figures]
    try:
        with History(place) as history:
            history.record(looks)
    except HistoryError as problem:
        show.warn(f"{problem}; the figures are not kept")
