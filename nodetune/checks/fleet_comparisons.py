"""The entries of fleet_comparisons.yml as values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from nodetune import data
from nodetune.api import Check, manual, repair
from nodetune.api.model import COSTS

AREA = "fleet"
WAYS = GPU, INVENTORY, ALL = "gpu", "inventory", "all"
"""How hosts are put into the groups that are compared; else the name of a fact says."""


@dataclass(frozen=True)
class Comparison:
    """One thing that hosts of a group should have in common; fleet_comparisons.yml says what each field means."""

    id: str
    title: str
    severity: str
    why: str
    confirm: str
    next: str
    sources: tuple[str, ...]
    kind: str = "same"
    facts: tuple[str, ...] = ()
    records: bool | str = False
    fields: tuple[str, ...] = ()
    only: Mapping[str, re.Pattern[str]] = field(default_factory=dict)
    count: bool = False
    alike: str = "all"
    within: str = ""
    missing: str = ""
    absent: str = ""
    empty: str = "empty"
    without: re.Pattern[str] | None = None
    measure: str = ""
    least: float = 0.0
    times: float = 1.0
    below: bool = False
    unit: str = ""
    unsure: str = ""
    repair: bool = False
    cost: str = COSTS[0]
    part_of: tuple[str, ...] = ()

    @property
    def needs(self) -> frozenset[str]:
        """Return the facts that it reads."""
        from nodetune.checks import fleet_metrics

        measured = fleet_metrics.needs_of(self.measure) if self.measure else ()
        return frozenset({*self.facts, *measured, *([self.within] if self.within else [])})

    def as_check(self) -> Check:
        """Return the comparison as a check, for explanations and lists; it is never judged on a single host."""
        doc = (
            f"{self.title}.\n\nWhy it matters: {self.why}\nConfirm manually: {self.confirm}\n"
            f"Side effects of the fix: None: it only reports.\nSources: {' ; '.join(self.sources)}\n"
        )
        needs = tuple(sorted(self.needs))
        remedy = repair(self.next) if self.repair else manual(self.next)
        return Check(
            None,
            self.severity,
            remedy,
            needs=needs,
            part_of=self.part_of,
            cost=self.cost,
            id=self.id,
            area=AREA,
            doc=doc,
        )


@cache
def every() -> Mapping[str, Comparison]:
    """Return id → comparison, in the order of the file."""
    return {entry["id"]: _comparison(entry) for entry in data.table("fleet_comparisons")}


def is_fleet(check_id: str) -> bool:
    """Return whether a finding's id is that of a comparison."""
    return check_id in every()


def _comparison(entry: Mapping[str, Any]) -> Comparison:
    given = dict(entry)
    fields = given.pop("field", [])
    given["fields"] = tuple([fields] if isinstance(fields, str) else fields)
    given |= {name: tuple(given.get(name, ())) for name in ("facts", "sources", "part_of")}
    given["only"] = {name: re.compile(pattern) for name, pattern in given.get("only", {}).items()}
    if "without" in given:
        given["without"] = re.compile(given["without"], re.IGNORECASE)
    return Comparison(**given)
