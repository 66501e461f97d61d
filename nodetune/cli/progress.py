"""Progress of a run on stderr: a bar with the time left on a terminal, or one JSON object a line for programs."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, final

from nodetune.cli import verbosity
from nodetune.cli.phase_state import Display, PhaseState
from nodetune.foundation import text as plain_text

if TYPE_CHECKING:
    from nodetune.remediation.ansible.events import Event

SCHEMA = "nodetune.progress/1"
LOST = ("failed", "unreachable")
"""Ansible's events for a host on which a task did not succeed."""


class Events(Display):
    """Writes one JSON object a line: docs/reports.md#progress."""

    def started(self, run: PhaseState) -> None:
        self._say(run, "started", {"hosts": run.hosts})

    def stage(self, run: PhaseState, name: str, hosts: int) -> None:
        self._say(run, "stage", {"stage": name, "hosts": hosts})

    def host(self, run: PhaseState, host: str, outcome: str, message: str) -> None:
        told = {"host": host, "outcome": outcome, "message": message, "done": len(run.outcomes), "hosts": run.hosts}
        self._say(run, "host", told)

    def finished(self, run: PhaseState) -> None:
        told = {"done": len(run.outcomes), "failed": run.failed, "hosts": run.hosts, "seconds": round(run.elapsed, 3)}
        self._say(run, "finished", told)

    def _say(self, run: PhaseState, event: str, about: Mapping[str, Any]) -> None:
        data = {"schema": SCHEMA, "event": event, "phase": run.phase, "time": round(time.time(), 3), **about}
        sys.stderr.write(f"{json.dumps(data)}\n")
        sys.stderr.flush()


class Details(Display):
    """Writes a line for each step of each host (-v)."""

    def stage(self, _run: PhaseState, name: str, hosts: int) -> None:
        verbosity.detail(f"{name}: {plain_text.count(hosts, 'host')}")

    def step(self, _run: PhaseState, host: str, what: str) -> None:
        verbosity.detail(f"{host}: {what}")


@final
class Progress(PhaseState):
    """Shows one phase of a run: `with Progress("audit", 12) as shown`.

    `plays`: whether a host is done when a play of Ansible's ends there.
    """

    def __init__(self, phase: str, hosts: int, seconds: float = 0.0, stages: int = 0, *, plays: bool = True) -> None:
        super().__init__(phase, hosts, seconds, stages)
        self._plays = plays
        self._display: Display = _display()

    def __enter__(self) -> Progress:
        self._display.started(self)
        return self

    def __exit__(self, *_: object) -> None:
        for host, (outcome, message) in self.lost.items():
            self.done(host, outcome, message)
        self._display.finished(self)

    def stage(self, name: str, hosts: int) -> None:
        """Show that a stage begins on this many hosts."""
        self.begun.append(name)
        self.latest = self.elapsed
        self._display.stage(self, name, hosts)

    def step(self, host: str, what: str) -> None:
        """Show what a host does now."""
        self._display.step(self, host, what)

    def done(self, host: str, outcome: str = "ok", message: str = "") -> None:
        """Show that a host is done. Only the first time counts."""
        if host not in self.outcomes:
            self.outcomes[host] = outcome
            self.latest = self.elapsed
            self._display.host(self, host, outcome, message)

    def heard(self, event: Event) -> None:
        """Show what Ansible says. A host is done with the task that ends its play."""
        if self._plays and event.status in LOST:
            self.lost.setdefault(event.host, (event.status, event.message))
        if self._plays and event.task == "End" and event.status != "started":
            self.done(event.host, *self.lost.get(event.host, ("ok",)))
        self.step(event.host, f"{event.task.lower()} {event.item}".strip() + _detail(event))


def _detail(event: Event) -> str:
    """Return with -v the result of a step, and how long it took."""
    if not verbosity.is_verbose():
        return ""
    changed, told = ", changed" if event.changed else "", f": {event.message}" if event.message else ""
    seconds = "" if event.status == "started" else f" in {event.seconds:.1f} s"
    return f": {event.status}{changed}{seconds}{told}"


def _display() -> Display:
    chosen = verbosity.chosen_progress()
    if chosen == verbosity.JSON:
        return Events()
    if verbosity.is_verbose():
        return Details()
    if chosen == verbosity.NONE or verbosity.is_quiet() or not sys.stderr.isatty():
        return Display()
    from nodetune.cli.progress_bar import Bar

    return Bar()
