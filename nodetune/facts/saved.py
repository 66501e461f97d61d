"""Saved facts in a file or folder: the host of each file, and whether the file is valid and fresh enough."""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from nodetune.api.model import HostFacts, HostResult
from nodetune.facts import document
from nodetune.foundation import by_key, paths, text
from nodetune.hosts.connection_options import ConnectionOptions, Vault

if TYPE_CHECKING:
    from nodetune.hosts.target import Target

MISSED = 2
"""Maximum age of a file as a multiple of its renewal interval: one run may fail."""

GRACE_SECONDS = 120
"""Seconds for the collection, the write and the transfer of a file."""

AHEAD_SECONDS = 300
"""Smaller clock differences are not reported."""

OLD_SECONDS = 7200
"""Older facts are reported with their age."""

BUNDLED = paths.bundled("facts/recorded")
"""Examples: no host whose current state matters."""


@dataclass(frozen=True)
class Rules:
    """The rules for files of a folder.

    `oldest`: seconds (None: a renewed file states its limit, others may have any age); `named`: each must be for the
    host of its file name, as renewed files must always be; `now`: Unix time.
    """

    oldest: float | None = None
    named: bool = False
    now: float = field(default_factory=time.time)

    def read(self, path: Path, host: str) -> HostResult:
        """Read one file of a folder, without judging it. A host with a bad or stale file counts as unreachable."""
        try:
            facts = document.load(path, regular=True)
        except document.FactsError as problem:
            return HostResult(host, "bad facts", str(problem))
        strict = self.named or self.oldest is not None or "every" in facts.about
        if strict and document.file_name(facts.host, set()) != path.name:
            return HostResult(host, "bad facts", f"{path}: contains facts for {facts.host} and must have that name")
        return self.aged(replace(facts, host=host) if strict else facts, path)

    def aged(self, facts: HostFacts, path: Path) -> HostResult:
        """Return the facts of a host unless they are too old. The message has their age if it matters."""
        state, message = self._age(facts.about, path)
        if state != "ok":
            return HostResult(facts.host, state, message)
        return HostResult(facts.host, "ok", "" if path.parent == BUNDLED else self._old(facts.about), facts=facts)

    def _old(self, about: Mapping[str, object]) -> str:
        """Return the time of collection if the facts are old."""
        collected = about.get("time")
        if not _is_number(collected) or self.now - collected < OLD_SECONDS:
            return ""
        day = datetime.datetime.fromtimestamp(collected, datetime.timezone.utc).date().isoformat()
        return f"facts collected {text.span(self.now - collected)} ago, on {day}"

    def age(self, facts: HostFacts) -> str:
        """Return the age of accepted facts."""
        collected = facts.about.get("time")
        return text.span(max(0, self.now - collected)) if _is_number(collected) else "some time"

    def _age(self, about: Mapping[str, object], path: Path) -> tuple[str, str]:
        """Return the state and, unless it is ok, the reason."""
        oldest, collected, every = self.oldest, about.get("time"), about.get("every")
        if oldest is None and "every" not in about:
            return "ok", ""
        if oldest is None:
            if not _is_number(every):
                return "bad facts", f"{path}: has no renewal interval"
            oldest = MISSED * every + GRACE_SECONDS
        if not _is_number(collected):
            return "bad facts", f"{path}: has no time of collection"
        age = self.now - collected
        if age < -AHEAD_SECONDS:
            return (
                "clock wrong",
                f"collected {text.span(-age)} from now, by the host's clock: set that, or this machine's",
            )
        if age > oldest:
            wanted = f"wanted at most {text.span(oldest)}"
            asks = "does nodetune-pull.timer run there?" if every else "collect them again (nodetune facts)"
            return "stale", f"collected {text.span(age)} ago, {wanted}: {asks}"
        return "ok", ""


def _is_number(given: object) -> TypeGuard[float]:
    """Return whether it is a number of seconds; a host may send anything, even numbers too large for a float."""
    return isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given < 1 << 50


def whose(found: Iterable[Path], hosts: Iterable[str] | None) -> tuple[dict[str, Path], list[str]]:
    """Return host → its file, and the hosts without one. Without `hosts`: every file by its name.

    A host's file has its name or, if unambiguous, the name with or without its domain.
    """
    files = {path.stem: path for path in found}
    if hosts is None:
        return files, []
    wanted = list(hosts)
    short, shorter = _by_short(files), _by_short(wanted)
    taken = {host: host if host in files else _other(host, short, shorter) for host in wanted}
    return {host: files[name] for host, name in taken.items() if name}, [host for host in wanted if not taken[host]]


def _by_short(names: Iterable[str]) -> Mapping[str, list[str]]:
    return by_key((name.partition(".")[0], name) for name in names)


def _other(host: str, files: Mapping[str, list[str]], hosts: Mapping[str, list[str]]) -> str:
    """Find the file of a host under its name with or without the domain."""
    short = host.partition(".")[0]
    candidates = files.get(short, [])
    clear = len(candidates) == len(hosts[short]) == 1 and short in (host, *candidates)
    return candidates[0] if clear else ""


def missing(host: str, folder: Path) -> HostResult:
    """Return the result of a host without a file."""
    return HostResult(host, "missing", f"{folder} has no file for {host}: is nodetune-pull.timer installed there?")


@dataclass(frozen=True)
class Saved:
    """`spec` and `limit` are those of `--inventory` and `--limit`; without them, all files are selected.

    `named_by` is the place in a project's settings that names the inventory.
    """

    path: Path
    spec: str | None = None
    limit: str | None = None
    vault: Vault | None = None
    named_by: str = ""

    @staticmethod
    def selected(path: Path, connection: ConnectionOptions) -> Saved:
        """Return the saved facts of the hosts that the options select."""
        return Saved(path, connection.inventory, connection.limit, connection.vault, connection.inventory_named_by)

    @cached_property
    def targets(self) -> list[Target] | None:
        """Return the inventory's hosts within the limit; None without an inventory. Raise InventoryError."""
        if not self.spec:
            return None
        from nodetune.hosts.inventory import selection  # saved facts seldom come with one

        return selection.targets(self.spec, self.limit, self.vault, self.named_by)

    @property
    def is_folder(self) -> bool:
        return self.path.is_dir()

    def facts(self) -> HostFacts:
        """Read the only file. Raise InventoryError or document.FactsError, also for a host that is not selected."""
        facts = document.load(self.path)
        if self.targets is not None:
            if not whose([Path(f"{facts.host}.json")], [each.name for each in self.targets])[0]:
                self._require_inventory(f"{self.path} contains facts for {facts.host}")
                raise document.FactsError(f"{self.path} contains facts for {facts.host}, which is not in {self.spec}")
        elif self.limit is not None:
            self._limited([facts.host])
        return facts

    def files(self) -> tuple[dict[str, Path], list[str]]:
        """Return host → its file, and the hosts without one. Raise document.FactsError or InventoryError."""
        found = document.files(self.path)
        if self.targets is not None:
            files, missing = whose(found, [each.name for each in self.targets])
            if not files:
                self._require_inventory(f"{self.path} has no file for it")
            return files, missing
        return whose(found, None if self.limit is None else self._limited([each.stem for each in found]))

    def _require_inventory(self, there: str) -> None:
        """Raise InventoryError if what was given is one name, which neither an inventory nor a file has."""
        from nodetune.hosts.inventory import selection
        from nodetune.hosts.patterns import InventoryError

        if self.spec and selection.is_one_name(self.spec) and selection.find(self.spec) is None:
            raise InventoryError(f"{selection.unknown(self.spec)}, and {there}")

    def _limited(self, hosts: list[str]) -> list[str]:
        from nodetune.hosts import patterns

        return patterns.pick(str(self.limit), hosts, {})
