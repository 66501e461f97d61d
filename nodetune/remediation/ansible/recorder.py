"""The events of a play → the record of its run."""

from __future__ import annotations

from collections.abc import Callable

from nodetune.remediation.ansible.events import Event, objects
from nodetune.remediation.runs import Run

KEPT = ("host", "task", "item", "status", "changed", "seconds", "message")


class Recorder:
    """Keeps each event's journal entries, differences and a line of it, then passes it on."""

    def __init__(self, run: Run, on_event: Callable[[Event], None]) -> None:
        self._run, self._on_event = run, on_event

    def __call__(self, event: Event) -> None:
        entries, diffs = objects(event.result.get("entries")), objects(event.result.get("diff"))
        if entries:
            self._run.add_entries(event.host, entries)
        if diffs:
            self._run.add_diffs(event.host, diffs)
        if event.status != "started":
            self._run.add_event({name: getattr(event, name) for name in KEPT})
        self._on_event(event)
