"""The next command of a conclusion, with the options that the user gave."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from nodetune.api.conclusion import Next
from nodetune.foundation import nodeset, text
from nodetune.report.status.standing import Line

JUDGED = ("apply", "audit", "explain", "plan", "readmit")
"""Commands that take a profile and a site file."""

WITH_SITE = (*JUDGED, "verify")
"""Commands that take a site file."""

OF_ONE = ("history", "readmit", "report", "status")
"""Commands whose argument is a host."""

WITHOUT_HOSTS = ("explain", "history", "status")
"""Commands that need no inventory."""

MAX_SET = 100
"""Characters of a node set in a command; a longer one is left out where the inventory says enough."""

_NAME = re.compile(r"\w[\w.-]{0,252}")
"""A host that a command may name; what a document calls another way might be an option."""


@dataclass(frozen=True)
class Asked:
    """The options that select hosts, profile and site file, and the history unless a setting names it. `every`: the hosts that they select."""

    inventory: str = ""
    limit: str = ""
    profiles: tuple[str, ...] = ()
    site: tuple[str, ...] = ()
    every: frozenset[str] = frozenset()
    history: str = ""

    def of(self, line: Line) -> str:
        """Return the next command for equal faults, or the manual step."""
        then = line.of.next
        return self.command(then, line.hosts if then.hosts else ()) if then.verb else text.plain(then.text)

    def command(self, then: Next, hosts: Sequence[str] = ()) -> str:
        """Return a command for these hosts, quoted for a shell and safe to print."""
        given = ["nodetune", *then.verb.split(), *self._hosts(then.verb, hosts), *then.words]
        given += [word for name in self.profiles for word in ("-p", name)] if then.verb in JUDGED else []
        given += [word for file in self.site for word in ("--site", file)] if then.verb in WITH_SITE else []
        given += ["--history", self.history] if self.history and then.verb in ("history", "status") else []
        return text.plain(shlex.join(given), 1000)

    def verb(self, verb: str, hosts: Sequence[str]) -> str:
        """Return a command about these hosts."""
        return self.command(Next(verb), hosts)

    def _hosts(self, verb: str, hosts: Sequence[str]) -> list[str]:
        if verb in OF_ONE:
            named = [host for host in hosts[:1] if _NAME.fullmatch(host)]
            return named if verb in WITHOUT_HOSTS else [*named, *(["-i", self.inventory] if self.inventory else [])]
        if verb in WITHOUT_HOSTS and not hosts:
            return []
        given = ["-i", self.inventory] if self.inventory else []
        if not hosts or (given and self.every <= set(hosts)):
            return [*given, *(["-l", self.limit] if self.limit else [])] or ["-i", "INVENTORY"]
        shown = nodeset.fold(hosts) if len(hosts) < 10_000 and all(map(_NAME.fullmatch, hosts)) else ""
        if shown and len(shown) <= MAX_SET:
            return [*given, "-l" if given else "-i", shown]
        return given or ["-i", "INVENTORY"]
