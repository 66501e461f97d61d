"""Facts that nodes left in a folder: which file is whose, whether it may be believed, and whether it is fresh enough."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeGuard

from nodetune import factfile
from nodetune.model import HostFacts, HostResult

MISSED = 2
"""A file may be older than its node renews it by so many times: one run may fail."""

GRACE_SECONDS = 120
"""For collecting, writing, and the way of a file to here."""

AHEAD_SECONDS = 300
"""Clocks that differ by less are no fault of a collection."""

_UNITS = (("days", 86400), ("h", 3600), ("min", 60), ("s", 1))


@dataclass(frozen=True)
class Rules:
    """What files of a folder are held to.

    `oldest`: seconds (None: as a file that is renewed says itself, and any age for others); `named`: each must be the
    host's whose name it goes by, which files that are renewed must be in any case; `now`: Unix time.
    """

    oldest: float | None = None
    named: bool = False
    now: float = field(default_factory=time.time)

    def read(self, path: Path, host: str) -> HostResult:
        """A file of a folder, unjudged, as that of a host. A bad or stale one is a host that was not reached."""
        try:
            facts = factfile.load(path, regular=True)
        except factfile.BadFacts as problem:
            return HostResult(host, "bad facts", str(problem))
        strict = self.named or self.oldest is not None or "every" in facts.about
        if strict and factfile.file_name(facts.host, set()) != path.name:
            return HostResult(host, "bad facts", f"{path}: holds the facts of {facts.host}, and must go by that name")
        return self.aged(replace(facts, host=host) if strict else facts, path)

    def aged(self, facts: HostFacts, path: Path) -> HostResult:
        """The facts of a host, unless they are too old to stand for it."""
        state, message = self._age(facts.about, path)
        return HostResult(facts.host, state, message, facts=None if message else facts)

    def age(self, facts: HostFacts) -> str:
        """How old facts are that have passed."""
        collected = facts.about.get("time")
        return _span(max(0, self.now - collected)) if _is_number(collected) else "some time"

    def _age(self, about: Mapping[str, object], path: Path) -> tuple[str, str]:
        """A state, and why it is not ok."""
        oldest, collected, every = self.oldest, about.get("time"), about.get("every")
        if oldest is None and "every" not in about:
            return "ok", ""
        if oldest is None:
            if not _is_number(every):
                return "bad facts", f"{path}: does not say how often it is renewed"
            oldest = MISSED * every + GRACE_SECONDS
        if not _is_number(collected):
            return "bad facts", f"{path}: does not say when it was collected"
        age = self.now - collected
        if age < -AHEAD_SECONDS:
            return "clock wrong", f"collected {_span(-age)} from now, by the host's clock: set that, or this machine's"
        if age > oldest:
            wanted = f"wanted at most {_span(oldest)}"
            return "stale", f"collected {_span(age)} ago, {wanted}: does nodetune-pull.timer run there?"
        return "ok", ""


def _is_number(given: object) -> TypeGuard[float]:
    """Of seconds; a host may say anything, numbers that no float holds too."""
    return isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given < 1 << 50


def _span(seconds: float) -> str:
    """A time in its largest unit of which there are at least two: hosts that are alike read alike."""
    for name, length in _UNITS:
        if seconds >= 2 * length:
            return f"{int(seconds // length)} {name}"
    return f"{int(seconds)} s"


def whose(found: Iterable[Path], hosts: Iterable[str] | None) -> tuple[dict[str, Path], list[str]]:
    """Host → its file, and the hosts without one. Without `hosts`: every file, by its name.

    A host's file goes by its name, or, where that is clear, by the name with or without its domain.
    """
    files = {path.stem: path for path in found}
    if hosts is None:
        return files, []
    wanted = list(hosts)
    short, shorter = _by_short(files), _by_short(wanted)
    taken = {host: host if host in files else _other(host, short, shorter) for host in wanted}
    return {host: files[name] for host, name in taken.items() if name}, [host for host in wanted if not taken[host]]


def _by_short(names: Iterable[str]) -> Mapping[str, list[str]]:
    known: dict[str, list[str]] = {}
    for name in names:
        known.setdefault(name.partition(".")[0], []).append(name)
    return known


def _other(host: str, files: Mapping[str, list[str]], hosts: Mapping[str, list[str]]) -> str:
    """The file of a host that is called otherwise there, where one of the two names is the other without its domain."""
    short = host.partition(".")[0]
    candidates = files.get(short, [])
    clear = len(candidates) == len(hosts[short]) == 1 and short in (host, *candidates)
    return candidates[0] if clear else ""


def missing(host: str, folder: Path) -> HostResult:
    """A host of the inventory that left no file."""
    return HostResult(host, "missing", f"{folder} holds no file of {host}: is nodetune-pull.timer installed there?")
