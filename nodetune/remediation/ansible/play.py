"""Running a playbook on hosts: every command that changes hosts, or asks them by Ansible, does it by `play`.

Nothing of Ansible stays: it runs (`runner`) in a folder of its own (`workspace`) under a `supervisor`, with an
inventory made for it (`inventory`), and its `events` come out as plain values, which the record of the run keeps.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nodetune.hosts.connection_options import MAX_FORKS, SessionOptions
from nodetune.hosts.target import Target
from nodetune.remediation.ansible import runner
from nodetune.remediation.ansible.events import Event, Outcome, objects
from nodetune.remediation.runs import earlier_runs
from nodetune.remediation.runs.record import Run

SECONDS = 3600.0
DRY_RUN = "dry-run"
"""The name of a run in check mode, which has no record."""

KEPT = ("host", "task", "item", "status", "changed", "seconds", "message")
"""Keys of each event that the record keeps, in addition to its journal entries and differences."""

OnEvent = Callable[[Event], None]


@dataclass(frozen=True)
class PlayOptions:
    """How a play runs.

    `forks` is lowered to MAX_FORKS. `seconds` are for as many hosts as run at the same time: the others wait for their
    turn, and the play gets that much longer. `check` is Ansible's check mode.
    """

    connection: SessionOptions = field(default_factory=SessionOptions)
    forks: int = MAX_FORKS
    seconds: float = SECONDS
    check: bool = False


def _ignore(_event: Event) -> None:
    pass


def play(
    playbook: str | Path,
    targets: Sequence[Target],
    variables: Mapping[str, Mapping[str, Any]],
    play_options: PlayOptions = PlayOptions(),
    run: Run | None = None,
    on_event: OnEvent = _ignore,
) -> dict[str, Outcome]:
    """Run a playbook (a name in playbooks/engine/, or a path) on targets; host name → outcome, for every target.

    `variables` are those of each host, by its name: JSON data, which no part of Ansible takes for a template. The name of
    the run, this machine, and the runs whose lock may be taken over are added. `run` keeps the journal entries,
    differences and events; without one, changes are for check mode only. `on_event` is called in this thread. Ctrl-C ends
    the play, not the caller: what was not finished comes out as `interrupted`. Raise OSError where no working folder
    can be made.
    """
    if not targets:
        return {}
    forks = max(1, min(play_options.forks, MAX_FORKS, len(targets)))
    given = _variables(targets, variables, run, play_options.check)
    return runner.run(
        playbook,
        targets,
        given,
        play_options.connection,
        ["--diff", *(["--check"] if play_options.check else []), "--forks", str(forks)],
        play_options.seconds * math.ceil(len(targets) / forks),
        recorded(run, on_event) if run else on_event,
    )


def recorded(run: Run, on_event: OnEvent) -> OnEvent:
    """Return what keeps each event in the record of the run, then passes it on."""

    def keep(event: Event) -> None:
        entries, diffs = objects(event.result.get("entries")), objects(event.result.get("diff"))
        if entries:
            run.add_entries(event.host, entries)
        if diffs:
            run.add_diffs(event.host, diffs)
        if event.status != "started":
            run.add_event({name: getattr(event, name) for name in KEPT})
        on_event(event)

    return keep


def _variables(
    targets: Sequence[Target], by_host: Mapping[str, Mapping[str, Any]], run: Run | None, check: bool
) -> dict[str, dict[str, Any]]:
    """Return the variables of each host: those of the run, overridden by its own."""
    if run is None and not check:
        return {target.name: dict(by_host.get(target.name, {})) for target in targets}
    own = {"nodetune_run": run.id if run else DRY_RUN, "nodetune_controller": platform.node()}
    over = earlier_runs.over(run) if run else {}
    return {
        target.name: {**own, "nodetune_take_over": over.get(target.name, ""), **by_host.get(target.name, {})}
        for target in targets
    }
