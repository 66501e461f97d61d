"""Running a playbook on hosts, through ansible-runner: the only place that starts Ansible.

Nothing of it stays: it works in a folder of its own (`desk`) under a supervisor (`keeper`), with an inventory made for
it (`reach`), and its events come out as plain values (`reading`).
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

from nodetune import paths
from nodetune.playbook.desk import Desk, opened
from nodetune.playbook.reach import Reach, by_hand, check_data, inventory, secrets
from nodetune.playbook.reading import Event, Outcome, Reader, objects
from nodetune.transport import Options, Target, Unreachable

__all__ = ["Event", "Outcome", "Way", "objects", "play"]

FORKS = 16
"""Hosts at a time. Each is a process of some 60 MiB for Ansible, where a probe is a thread."""

SECONDS = 3600.0


@dataclass(frozen=True)
class Way:
    """How a play goes: `seconds` bounds all of it, `check` is Ansible's check mode, `options` are those of the connection."""

    options: Options = field(default_factory=Options)
    forks: int = FORKS
    seconds: float = SECONDS
    check: bool = False


def _ignore(_event: Event) -> None:
    pass


def play(
    playbook: str | Path,
    targets: Sequence[Target],
    variables: Mapping[str, Mapping[str, Any]],
    way: Way = Way(),
    on_event: Callable[[Event], None] = _ignore,
) -> dict[str, Outcome]:
    """Run a playbook (a name in playbooks/, or a path) on targets; host name → outcome, for every target.

    `variables` are those of each host, by its name: JSON data, which no part of Ansible takes for a template. `on_event`
    is called in this thread. Ctrl-C ends the play, not the caller: what was not finished comes out as `interrupted`.
    Raises OSError where no working folder can be made.
    """
    found, lost = _reachable(targets, variables, Reach(way.options))
    if not found:
        return lost
    reader = Reader(
        {alias: target.name for alias, (target, _) in found.items()},
        secrets(targets),
        {alias: by_hand(target) for alias, (target, _) in found.items()},
    )
    with opened() as place:
        place.lay_out(inventory({alias: of for alias, (_, of) in found.items()}))
        arguments = ["--diff", *(["--check"] if way.check else []), "--forks", str(max(1, min(way.forks, len(found))))]
        stopped = _run(place, [*arguments, str(_path(playbook))], reader, way.seconds, on_event)
    outcomes = {**lost, **reader.outcomes(stopped)}
    return {target.name: outcomes[target.name] for target in targets}


def _path(playbook: str | Path) -> Path:
    return playbook.absolute() if isinstance(playbook, Path) else paths.shared("playbooks") / f"{playbook}.yml"


def _reachable(
    targets: Sequence[Target], variables: Mapping[str, Mapping[str, Any]], reach: Reach
) -> tuple[dict[str, tuple[Target, dict[str, Any]]], dict[str, Outcome]]:
    """Alias → target and all its variables; and the outcomes of those that Ansible cannot be sent to."""
    found, lost = {}, {}
    for number, target in enumerate(targets):
        given = dict(variables.get(target.name, {}))
        try:
            check_data(given)
            found[f"h{number}"] = target, {**given, **reach.variables(target)}
        except Unreachable as problem:
            lost[target.name] = Outcome(target.name, "unreachable", problem.message)
    return found, lost


def _run(place: Desk, arguments: list[str], reader: Reader, seconds: float, on_event: Callable[[Event], None]) -> str:
    """Run Ansible to its end. Returns why it was stopped, or nothing."""
    import ansible_runner
    from ansible_runner.utils import get_callback_dir

    config = ansible_runner.RunnerConfig(private_data_dir=str(place.folder), fact_cache_type="memory", ident="play")
    config.playbook = "-"
    config.prepare()
    config.command = place.command(["ansible-playbook", "-i", str(place.inventory), *arguments])
    config.env = place.environment(get_callback_dir(), config.artifact_dir)
    stopped: list[str] = []

    def stop(why: str) -> None:
        stopped.append(why)
        place.stop()

    end = time.monotonic() + seconds

    def late() -> bool:
        """Asked about once a second. Never true: the keeper ends more than the one process that the runner knows."""
        if time.monotonic() > end and not stopped:
            stop(f"stopped: not done within {seconds:g} s")
        return False

    def heard(raw: Mapping[str, Any]) -> bool:
        event = reader.read(raw)
        if event is not None:
            on_event(event)
        return False  # no event is written to a file

    runner = ansible_runner.Runner(config, event_handler=heard, cancel_callback=late)
    with _interrupts(lambda: stop("stopped by Ctrl-C")):
        try:
            runner.run()
        except BaseException:
            place.end()
            raise
    return stopped[0] if stopped else ""


@contextmanager
def _interrupts(stop: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C calls `stop` meanwhile. Signals are the main thread's: elsewhere nothing is changed."""
    if current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, lambda *_: stop())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
