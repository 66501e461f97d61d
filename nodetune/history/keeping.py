"""Keeps what a command measured, concluded and did. What the history cannot keep ends no command: that is one warning."""

import contextlib
import time
from collections.abc import Iterable, Mapping

from nodetune.api.conclusion import Action, Examined
from nodetune.foundation.stage_output import Show
from nodetune.history.connection import HistoryError
from nodetune.history.history import History
from nodetune.history.snapshot import of_figures

Measured = tuple[str, float | None, Mapping[str, float]]
"""A host, the time of its figures (None: now), and leaf → figure."""


def keep(
    place: str,
    show: Show,
    *,
    measured: Iterable[Measured] = (),
    concluded: Examined | None = None,
    actions: Iterable[Action] = (),
) -> None:
    """Keep figures of hosts that have any, what was concluded, and what was done. Without a place, nothing."""
    if not place:
        return
    looks = [of_figures(host, int(at or time.time()), figures) for host, at, figures in measured if figures]
    done = list(actions)
    try:
        with History(place, show) as history:
            history.record(looks)
            if concluded:
                history.conclude(concluded)
            if done:
                history.act(done)
    except HistoryError as problem:
        show.warn(f"{problem}; what was found is not kept")


def done(place: str, show: Show) -> list[Action]:
    """Return what was done to hosts, the oldest first; nothing where there is no history yet, or none that can be read."""
    with contextlib.suppress(HistoryError), History(place, show, make=False) as history:
        return history.actions()
    return []
