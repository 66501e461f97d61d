"""How a stage shows what it does: the command line, tests and pytest each have their own way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Phase(Protocol):
    """A phase of a run on hosts."""

    def stage(self, name: str, hosts: int) -> None:
        """Show that a stage begins on this number of hosts."""

    def step(self, host: str, what: str) -> None:
        """Show what a host does now."""

    def done(self, host: str, outcome: str = "ok", message: str = "") -> None:
        """Show that a host is done."""

    def heard(self, event: Any) -> None:
        """Show an event of Ansible's."""


class Show(Protocol):
    """Shows the progress and messages of a command's work."""

    def phase(
        self, name: str, hosts: int, seconds: float = 0.0, stages: int = 0, *, plays: bool = True
    ) -> AbstractContextManager[Phase]:
        """Show a phase on this number of hosts.

        `seconds` is its maximum duration, if known; `stages` the number of its parts, if these are counted and not hosts;
        `plays` whether a host is done when a play of Ansible's ends there.
        """

    def note(self, text: str) -> None:
        """Show a message that is not a result."""

    def detail(self, text: str) -> None:
        """Show a message for verbose output."""

    def warn(self, text: str) -> None:
        """Show a message even if little is shown."""


class Silent:
    """Shows nothing."""

    @contextmanager
    def phase(self, *_: Any, **__: Any) -> Iterator[Silent]:
        yield self

    def _ignore(self, *_: Any) -> None:
        return

    stage = step = done = heard = note = detail = warn = _ignore


def measuring(phase: Phase) -> Callable[[str, str], None]:
    """Return what shows the measurements of hosts as steps of a phase."""
    return lambda host, what: phase.step(host, f"measuring {what}")


def counted(show: Show, name: str, results: Iterable[T], hosts: int) -> Iterator[T]:
    """Yield the results of hosts as they come, and show how many have come."""
    with show.phase(name, hosts) as phase:
        for result in results:
            each: Any = result
            told = f": {each.message}" if each.message else ""
            show.detail(f"{each.host}: {each.state} in {each.seconds:.1f} s{told}")
            phase.done(each.host, each.state, each.message)
            yield result
