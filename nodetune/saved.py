"""Saved facts: one file, or a folder of them, and whose of them a run is about."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from nodetune import factfile, hosts, inventory, pull
from nodetune.hosts import BadInventory
from nodetune.model import HostFacts
from nodetune.transport import Target


@dataclass(frozen=True)
class Saved:
    """`spec` and `limit` are those of `--inventory` and `--limit`: without them, all that is there."""

    path: Path
    spec: str | None = None
    limit: str | None = None

    @cached_property
    def targets(self) -> list[Target] | None:
        """The inventory's hosts, within the limit; None without an inventory. Raises BadInventory."""
        return inventory.targets(self.spec, self.limit) if self.spec else None

    @property
    def is_folder(self) -> bool:
        return self.path.is_dir()

    def facts(self) -> HostFacts:
        """What the one file holds. Raises factfile.BadFacts; BadInventory where those are of a host that is not meant."""
        facts = factfile.load(self.path)
        if self.targets is not None:
            if not pull.whose([Path(f"{facts.host}.json")], [each.name for each in self.targets])[0]:
                raise BadInventory(f"{self.path} holds the facts of {facts.host}, which {self.spec} does not mean")
        elif self.limit is not None:
            hosts.pick(self.limit, [facts.host], {})
        return facts

    def files(self) -> tuple[dict[str, Path], list[str]]:
        """Of a folder: host → its file, and the hosts that left none. Raises factfile.BadFacts, BadInventory."""
        found = factfile.files(self.path)
        if self.targets is not None:
            return pull.whose(found, [each.name for each in self.targets])
        return pull.whose(found, self.limit and hosts.pick(self.limit, [each.stem for each in found], {}))
