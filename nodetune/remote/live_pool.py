"""Scripts that run on many hosts, send events while they run, and receive events meanwhile."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from nodetune.hosts.connection_options import ConnectionOptions, SessionOptions
from nodetune.hosts.target import Target, UnreachableError
from nodetune.remote.connect import Connector
from nodetune.remote.live_session import LiveSession, Mailbox
from nodetune.remote.login.deadline import Deadline
from nodetune.remote.pool import Pool, Say, ScriptFor


@dataclass(frozen=True)
class Ended:
    """The last event of a host in a live session. `problem` says why it failed, if so."""

    problem: UnreachableError | None
    seconds: float


class LivePool:
    """Hosts of one of the `groups` run together, whatever `forks` is. `options.seconds` is a host's total time."""

    def __init__(
        self,
        groups: Sequence[Sequence[Target]],
        script_for: ScriptFor,
        options: SessionOptions,
        forks: int = ConnectionOptions.forks,
        transport: str = "auto",
    ) -> None:
        self._script_for = script_for
        self._options = options
        self._forks = forks
        self._mail: dict[str, Mailbox] = {}
        self._talks: dict[str, LiveSession] = {}
        self._say: dict[str, Say] = {}
        self._crew = Pool(groups, self._work, options.seconds)
        self._ways = Connector(self._talk, options, transport, lambda target: not self._talks[target.name].begun)

    def events(self) -> Generator[tuple[Target, Any], None, None]:
        """Yield (target, event) on arrival: JSON objects, and Ended once per host. Closing it ends everything."""
        try:
            for target, event, seconds in self._crew.work(self._forks):
                yield target, event if seconds is None else Ended(event, seconds)
        finally:
            self._ways.close()

    def say(self, name: str, event: Any) -> None:
        """Send an event to a host as soon as it runs. A host that has ended does not receive it."""
        self._mail.setdefault(name, Mailbox()).put(event)

    def _work(self, target: Target, deadline: Deadline, say: Say) -> UnreachableError | None:
        self._say[target.name] = say
        with self._mail.setdefault(target.name, Mailbox()).open():
            ended: UnreachableError | None = self._ways.outcome(target, lambda: self._ways.reach(target, deadline)[0])
        return ended

    def _talk(self, target: Target) -> LiveSession:
        script, nonce = self._script_for(target)
        mail, say = self._mail[target.name], self._say[target.name]
        talk = self._talks[target.name] = LiveSession(target, script, nonce, self._options.most_said, mail, say)
        return talk
