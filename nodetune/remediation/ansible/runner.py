"""One run of Ansible, through ansible-runner: the only place that starts it. Its events come out as plain values."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

from nodetune.foundation import paths
from nodetune.hosts.connection_options import SessionOptions
from nodetune.hosts.target import Target
from nodetune.remediation.ansible.events import Event, Outcome, Reader
from nodetune.remediation.ansible.inventory import PlayInventory, inventory, login_command, secrets
from nodetune.remediation.ansible.workspace import Workspace, opened


def run(
    playbook: str | Path,
    targets: Sequence[Target],
    variables: Mapping[str, Mapping[str, Any]],
    connection: SessionOptions,
    arguments: Sequence[str],
    seconds: float,
    on_event: Callable[[Event], None],
) -> dict[str, Outcome]:
    """Run a playbook with these arguments of ansible-playbook, for `seconds` at most; host name → outcome."""
    reach = PlayInventory(connection, seconds)
    try:
        found, lost = reach.reached(targets, variables)
        outcomes = {name: Outcome(name, "unreachable", why) for name, why in lost.items()}
        if not found:
            return outcomes
        hosts = inventory({alias: of for alias, (_, of) in found.items()})
        hidden, logins = secrets(targets), {alias: login_command(target) for alias, (target, _) in found.items()}
        reader = Reader({alias: target.name for alias, (target, _) in found.items()}, hidden, logins)
        with opened() as place:
            place.lay_out(hosts)
            stopped = _run(place, [*arguments, str(_path(playbook))], reader, seconds, on_event)
    finally:
        reach.close()
    outcomes |= reader.outcomes(stopped)
    return {target.name: outcomes[target.name] for target in targets}


def _path(playbook: str | Path) -> Path:
    return (
        playbook.absolute() if isinstance(playbook, Path) else paths.shared("playbooks") / "engine" / f"{playbook}.yml"
    )


def _run(
    place: Workspace, arguments: list[str], reader: Reader, seconds: float, on_event: Callable[[Event], None]
) -> str:
    """Run Ansible to its end. Return why it was stopped, or nothing."""
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
        """Answer the runner, which asks about once a second. Never true: the supervisor ends all processes itself."""
        if time.monotonic() > end and not stopped:
            stop(f"stopped: not finished within {seconds:g} s")
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
    """Call `stop` on Ctrl-C meanwhile. Signals go to the main thread: in other threads nothing changes."""
    if current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, lambda *_: stop())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
