"""Criteria by which others rate GPU nodes, and the checks that judge each: nodetune/data/scorecards/. Pure once read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from nodetune import checks
from nodetune.api.model import Each, Fact, HostFacts, Unread, Value
from nodetune.audit import evaluate
from nodetune.checks import fleet_comparisons
from nodetune.foundation import paths, yaml_lines

VIRTUAL = "host.virtual"
MACHINES = {"bare metal": False, "virtual machine": True}
OTHERS = ("job", "organisation")
"""Reasons that name whose a criterion is, if not the node's."""


@dataclass(frozen=True)
class Criterion:
    """One row: criteria of the same content by their ids, and either the checks that judge them or why none does.

    `also`: those of its checks that only fail it; where it has no others, nothing passes it. `by`: fact (and keys in it) → what its
    lack means; without each of them no check passes it. `machine`: one of MACHINES that it is about (empty: all). `shown`: the
    figure or command that shows it. `of`: node, job or organisation. `differs`: what nodetune judges in another way
    than the source.
    """

    ids: tuple[str, ...]
    text: str
    checks: tuple[str, ...] = ()
    why: str = ""
    differs: str = ""
    also: tuple[str, ...] = ()
    shown: str = ""
    of: str = "node"
    machine: str = ""
    by: Mapping[str, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return len(self.ids)

    @property
    def name(self) -> str:
        return ", ".join(self.ids)


@dataclass(frozen=True)
class Scorecard:
    """A rating: which edition of it, when that was read and where, and its criteria."""

    name: str
    title: str
    version: str
    as_of: str
    source: str
    criteria: tuple[Criterion, ...]

    @property
    def checks(self) -> frozenset[str]:
        return frozenset(check for each in self.criteria for check in each.checks)

    @cached_property
    def facts_of(self) -> Mapping[str, frozenset[str]]:
        """Check → the collected facts without which its pass says nothing here."""
        known, compared = checks.catalogue(), fleet_comparisons.every()
        every = {check: checks.load(check) for check in self.checks if check in known}
        every |= {check: compared[check].as_check() for check in self.checks if check in compared}
        return {check: frozenset(evaluate.required_facts([each])) for check, each in every.items()}

    def rests_on(self, host: HostFacts) -> dict[str, Fact]:
        """Return the facts of a host that its criteria name, and those of its checks that were not read."""
        own = {by.partition("/")[0] for each in self.criteria for by in each.by} | {VIRTUAL}
        found = {name: host.get(name) for name in own.union(*self.facts_of.values())}
        return {name: fact for name, fact in found.items() if name in own or lacking(fact)}


def lacking(fact: Fact) -> str:
    """Return why a fact, or a part of it, was not read; empty if it was."""
    parts = fact.of.values() if isinstance(fact, Each) else (fact,)
    return next((each.reason for each in parts if isinstance(each, Unread)), "")


def has(facts: Mapping[str, Fact], by: str) -> bool:
    """Return whether a fact has something at this place: `slurm.config/settings/prolog`."""
    name, *keys = by.split("/")
    fact = facts.get(name)
    value = fact.value if isinstance(fact, Value) else None
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return bool(value)


@cache
def read(name: str) -> Scorecard:
    """Return the scorecard of that name. Raise yaml_lines.FileError where its file has a row that is neither judged nor explained."""
    file = yaml_lines.load(paths.bundled("data/scorecards") / f"{name}.yml")
    about = {key: file.data[key] for key in ("title", "version", "as_of", "source")}
    rows = tuple(_row(file, number, each) for number, each in enumerate(file.data["criteria"]))
    return Scorecard(name, **about, criteria=rows)


def _row(file: yaml_lines.LocatedYaml, number: int, row: dict[str, Any]) -> Criterion:
    if ("checks" in row) == ("why" in row or ("shown" in row and "checks" not in row)):
        file.fail("a criterion has either checks, or why or shown", "criteria", number)
    why = row.get("why", "")
    if why and why not in file.data["reasons"]:
        file.fail(f"no reason {why!r} in reasons", "criteria", number)
    also = tuple(row.get("also", ()))
    return Criterion(
        tuple(map(str, row["ids"] if "ids" in row else [row["id"]])),
        row["is"],
        (*row.get("checks", ()), *also),
        file.data["reasons"][why] if why else "",
        row.get("differs", ""),
        also,
        row.get("shown", ""),
        why if why in OTHERS else "node",
        row.get("machine", ""),
        row.get("by", {}),
    )
