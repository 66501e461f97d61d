"""Facts kept in a folder as hosts answer, so that an interrupted or repeated audit need not collect them again."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from nodetune.api.model import HostFacts, HostResult
from nodetune.facts import document, saved
from nodetune.foundation import file_io
from nodetune.hosts.target import Target

ASKED = ".asked-{}"
"""Saved with the facts: the digest of the names that were asked for. A host need not know all of them."""


@dataclass(frozen=True)
class FactCache:
    """One file for each host, by its name, in a folder; `oldest`: seconds for which its facts are valid."""

    folder: Path
    oldest: float
    via: str = "ssh"

    def known(self, target: Target, names: Iterable[str]) -> HostResult | None:
        """Return the facts of a host if all these names are there, the user is the same and they are fresh enough.

        Return None for any problem with the file or the host's variables.
        """
        if target.problem:
            return None
        path = self._path(target.name)
        try:
            facts = document.load(path, regular=True)
        except document.FactsError:
            return None
        there = facts.facts.keys() | _names(self.folder / ASKED.format(facts.about.get("asked")))
        rules = saved.Rules(self.oldest)
        aged = rules.aged(facts, path)
        if facts.host != target.name or facts.about.get("as") != self._reader(target) or not set(names) <= there:
            return None
        return HostResult(facts.host, "ok", f"facts cached {rules.age(facts)} ago", facts=facts) if aged.facts else None

    def keep(self, target: Target, facts: HostFacts, names: Iterable[str]) -> None:
        """Save the answer of a host to these names. Raise OSError."""
        text = "".join(f"{name}\n" for name in sorted(names))
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        asked = self.folder / ASKED.format(digest)
        if not asked.exists():
            file_io.write(asked, text)
        told = {**facts.about, "asked": digest, "as": self._reader(target)}
        file_io.write(self._path(target.name), document.dump(HostFacts(target.name, facts.facts, told)), file_io.OWN)

    def _reader(self, target: Target) -> str:
        """Return the user who reads and the transport: another user may see more or less."""
        return f"{self.via} {target.user or ''} {target.become_user if target.become else ''}".rstrip()

    def _path(self, host: str) -> Path:
        return self.folder / document.file_name(host, set())


@cache
def _names(path: Path) -> frozenset[str]:
    """Return the fact names in a file; empty if it is gone or unreadable."""
    try:
        return frozenset(path.read_text("utf-8").split())
    except (OSError, ValueError):
        return frozenset()
