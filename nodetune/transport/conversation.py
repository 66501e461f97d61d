"""Scripts that run on many hosts, say what happens while it happens, and are told things meanwhile."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from nodetune.transport import Options, Target, Unreachable
from nodetune.transport.dialogue import Dialogue, Mailbox
from nodetune.transport.fanout import Crew, Say, ScriptFor
from nodetune.transport.lifeline import Lifeline
from nodetune.transport.ways import Ways


@dataclass(frozen=True)
class Ended:
    """The last of a host in a conversation. `problem` says why it came to no good end, if so."""

    problem: Unreachable | None
    seconds: float


class Conversation:
    """Hosts of one of the `groups` run at the same time, whatever `forks` says. `options.seconds` is a host's whole time."""

    def __init__(
        self,
        groups: Sequence[Sequence[Target]],
        script_for: ScriptFor,
        options: Options,
        forks: int = 64,
        transport: str = "auto",
    ) -> None:
        self._script_for = script_for
        self._options = options
        self._forks = forks
        self._mail: dict[str, Mailbox] = {}
        self._talks: dict[str, Dialogue] = {}
        self._say: dict[str, Say] = {}
        self._crew = Crew(groups, self._work, options.seconds)
        self._ways = Ways(self._talk, options, transport, lambda target: not self._talks[target.name].begun)

    def events(self) -> Generator[tuple[Target, Any], None, None]:
        """(target, event) as they come: JSON objects, and Ended once for each host. Closing it ends everything at once."""
        try:
            for target, event, seconds in self._crew.work(self._forks):
                yield target, event if seconds is None else Ended(event, seconds)
        finally:
            self._ways.close()

    def say(self, name: str, event: Any) -> None:
        """Tell a host something, as soon as it runs. One that has ended does not hear it."""
        self._mail.setdefault(name, Mailbox()).put(event)

    def _work(self, target: Target, life: Lifeline, say: Say) -> Unreachable | None:
        self._say[target.name] = say
        with self._mail.setdefault(target.name, Mailbox()).open():
            ended: Unreachable | None = self._ways.outcome(target, lambda: self._ways.reach(target, life)[0])
        return ended

    def _talk(self, target: Target) -> Dialogue:
        script, nonce = self._script_for(target)
        mail, say = self._mail[target.name], self._say[target.name]
        talk = self._talks[target.name] = Dialogue(target, script, nonce, self._options.most_said, mail, say)
        return talk
