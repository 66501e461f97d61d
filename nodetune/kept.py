"""Facts kept in a folder as hosts answer: what an audit that was interrupted, or is run again soon, need not ask for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from nodetune import factfile, pull, whole
from nodetune.model import HostFacts, HostResult
from nodetune.transport import Target

ASKED = ".asked-{}"
"""Beside the facts: the names that were asked for, by their digest. A host need not know all of them."""


@dataclass(frozen=True)
class Kept:
    """One file a host, by its name, in a folder; `oldest`: seconds for which its facts stand for the host."""

    folder: Path
    oldest: float
    via: str = "ssh"

    def known(self, target: Target, names: Iterable[str]) -> HostResult | None:
        """The facts of a host, unjudged, if all of these are there, read by the same user, and young enough.

        None whatever is wrong with the file.
        """
        path = self._path(target.name)
        try:
            facts = factfile.load(path, regular=True)
        except factfile.BadFacts:
            return None
        there = facts.facts.keys() | _names(self.folder / ASKED.format(facts.about.get("asked")))
        rules = pull.Rules(self.oldest)
        aged = rules.aged(facts, path)
        if facts.host != target.name or facts.about.get("as") != self._reader(target) or not set(names) <= there:
            return None
        return HostResult(facts.host, "ok", f"facts kept {rules.age(facts)} ago", facts=facts) if aged.facts else None

    def keep(self, target: Target, facts: HostFacts, names: Iterable[str]) -> None:
        """Write down what a host answered when it was asked for these. Raises OSError."""
        text = "".join(f"{name}\n" for name in sorted(names))
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        asked = self.folder / ASKED.format(digest)
        if not asked.exists():
            whole.write(asked, text)
        told = {**facts.about, "asked": digest, "as": self._reader(target)}
        whole.write(self._path(target.name), factfile.dump(HostFacts(target.name, facts.facts, told)))

    def _reader(self, target: Target) -> str:
        """Who reads, and on which way: another user may see more, or less."""
        return f"{self.via} {target.user or ''} {target.become_user if target.become else ''}".rstrip()

    def _path(self, host: str) -> Path:
        return self.folder / factfile.file_name(host, set())


@cache
def _names(path: Path) -> frozenset[str]:
    """None where the file is gone or unreadable: then what the host told is all that counts."""
    try:
        return frozenset(path.read_text("utf-8").split())
    except (OSError, ValueError):
        return frozenset()
