"""Facts kept in a folder as hosts answer: what an audit that was interrupted, or is run again soon, need not ask for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nodetune import factfile, whole
from nodetune.model import HostFacts
from nodetune.pull import Rules


@dataclass(frozen=True)
class Kept:
    """One file a host, by its name, in a folder; `oldest`: seconds for which its facts stand for the host."""

    folder: Path
    oldest: float

    def known(self, host: str, names: Iterable[str]) -> HostFacts | None:
        """The facts of a host, if all of these are there and young enough; whatever is wrong with the file, None."""
        path = self._path(host)
        try:
            facts = factfile.load(path)
        except (factfile.BadFacts, OSError):
            return None
        asked = set(names)
        holds = facts.about.get("asked") == _digest(asked) or asked <= facts.facts.keys()
        return Rules(self.oldest).aged(facts, path).facts if holds and facts.host == host else None

    def keep(self, facts: HostFacts, names: Iterable[str]) -> None:
        """Write down what a host answered when it was asked for these. Raises OSError."""
        told = {**facts.about, "asked": _digest(names)}
        whole.write(self._path(facts.host), factfile.dump(HostFacts(facts.host, facts.facts, told)))

    def _path(self, host: str) -> Path:
        return self.folder / factfile.file_name(host, set())


def _digest(names: Iterable[str]) -> str:
    """A host need not know all that it is asked for: what was asked shows by this alone."""
    return hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()[:16]
