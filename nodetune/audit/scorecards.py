"""Criteria by which others rate GPU nodes, and the checks that judge each: nodetune/data/scorecards/. Pure once read."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from nodetune.foundation import paths, yaml_lines


@dataclass(frozen=True)
class Criterion:
    """One row: criteria of the same content by their ids, and either the checks that judge them or why none does.

    `also`: those of its checks that only fail it. They pass as well where nothing that the criterion asks for is there.
    `differs`: what nodetune judges in another way than the source.
    """

    ids: tuple[str, ...]
    text: str
    checks: tuple[str, ...] = ()
    why: str = ""
    differs: str = ""
    also: tuple[str, ...] = ()

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


@cache
def read(name: str) -> Scorecard:
    """Return the scorecard of that name. Raise yaml_lines.FileError where its file has a row that is neither judged nor explained."""
    file = yaml_lines.load(paths.bundled("data/scorecards") / f"{name}.yml")
    about = {key: file.data[key] for key in ("title", "version", "as_of", "source")}
    rows = tuple(_row(file, number, each) for number, each in enumerate(file.data["criteria"]))
    return Scorecard(name, **about, criteria=rows)


def _row(file: yaml_lines.LocatedYaml, number: int, row: dict[str, Any]) -> Criterion:
    if ("checks" in row) == ("why" in row):
        file.fail("a criterion has either checks or why", "criteria", number)
    if row.get("why", "") not in {"", *file.data["reasons"]}:
        file.fail(f"no reason {row['why']!r} in reasons", "criteria", number)
    ids = tuple(row["ids"] if "ids" in row else [row["id"]])
    why = file.data["reasons"][row["why"]] if "why" in row else ""
    also = tuple(row.get("also", ()))
    return Criterion(ids, row["is"], (*row.get("checks", ()), *also), why, row.get("differs", ""), also)
