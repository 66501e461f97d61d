"""Progress on a terminal: a bar with the time that is left."""

import threading
from datetime import timedelta
from typing import Any

from rich import progress
from rich.console import Console
from rich.table import Column
from rich.text import Text

from nodetune.cli.phase_state import Display, PhaseState
from nodetune.foundation import parallel, text

DELAY = 1.0
"""Seconds for which nothing is shown: most audits of one host are over then."""

WAITING, SHOWN, OVER = "waiting", "shown", "over"

EARLY = 2.0
"""Seconds before which nothing is known of the time that is left."""


class Bar(Display):
    """Draws one line, and takes it away in the end. Hosts that fail under Ansible stay on the screen."""

    def __init__(self) -> None:
        rest = Column(no_wrap=True, overflow="ellipsis", ratio=1)
        self._bar = progress.Progress(
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(16),
            progress.TextColumn("{task.fields[counts]}", markup=False),
            progress.TimeElapsedColumn(),
            _Left(),
            progress.TextColumn("{task.fields[now]}", markup=False, table_column=rest),
            console=Console(stderr=True, highlight=False, markup=False, emoji=False),
            transient=True,
            redirect_stdout=False,
            expand=True,
        )
        self._lock = threading.Lock()
        self._state = WAITING
        self._timer = threading.Timer(DELAY, self._show)
        self._timer.daemon = True

    def started(self, run: PhaseState) -> None:
        whole = run.stages or run.hosts
        self._task = self._bar.add_task(run.phase, total=whole, counts=run.counts(), now="", run=run)
        if parallel.processes(run.hosts) == 1:  # a process with threads must not fork: else the first host begins it
            self._timer.start()

    def stage(self, run: PhaseState, name: str, hosts: int) -> None:
        self._print(run, f"{name}: {text.count(hosts, 'host')}")
        self._draw(run, completed=len(run.begun) - 1)

    def step(self, run: PhaseState, host: str, what: str) -> None:
        self._draw(run, now=text.plain(what if run.hosts == 1 else f"{host}: {what}", 100))

    def host(self, run: PhaseState, host: str, outcome: str, message: str) -> None:
        if host in run.lost:
            self._print(run, text.plain(f"{host}: {outcome}: {message}"))
        if not run.stages:
            self._draw(run, completed=len(run.outcomes))

    def finished(self, _run: PhaseState) -> None:
        self._timer.cancel()
        with self._lock:
            if self._state == SHOWN:
                self._bar.stop()
            self._state = OVER

    def _show(self) -> None:
        with self._lock:
            if self._state == WAITING:
                self._state = SHOWN
                self._bar.start()

    def _draw(self, run: PhaseState, completed: float | None = None, now: str | None = None) -> None:
        if run.elapsed >= DELAY:
            self._show()
        shown: dict[str, Any] = {} if now is None else {"now": now}
        self._bar.update(self._task, completed=completed, counts=run.counts(), **shown)

    def _print(self, run: PhaseState, line: str) -> None:
        self._draw(run)
        self._bar.console.print(Text(line), soft_wrap=True)


class _Left(progress.ProgressColumn):
    """The remaining time: known durations, else extrapolated from the completed part.

    Where nothing was done for half of the time, hosts that do not answer are waited for: how many are done says nothing
    then. Rich's own estimate does not change meanwhile.
    """

    def render(self, task: progress.Task) -> Text:
        run: PhaseState = task.fields["run"]
        if run.seconds:
            return Text(f"at most {_clock(max(0.0, run.seconds - run.elapsed))} left")
        if not (task.completed and task.total) or run.elapsed < EARLY or run.elapsed > 2 * run.latest:
            return Text("")
        return Text(f"about {_clock(run.elapsed * (task.total - task.completed) / task.completed)} left")


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=int(seconds)))
