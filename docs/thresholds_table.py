"""The table of thresholds in docs/project/statistics.md, from nodetune/statistics/thresholds.py."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from nodetune.foundation import paths
from nodetune.statistics import thresholds

HEADING = re.compile(r"^# (?P<heading>.+)\. Source: (?P<source>.+)$")
TABLE = re.compile(r"(?<=^<!-- thresholds -->\n).*?(?=^<!-- end of thresholds -->$)", re.DOTALL | re.MULTILINE)


class Threshold(NamedTuple):
    heading: str
    names: tuple[str, ...]
    values: tuple[Any, ...]
    decides: str
    source: str


def every() -> Iterator[Threshold]:
    """Yield the thresholds in their order. Raise ValueError for one that does not say what it decides."""
    path = paths.PACKAGE / "statistics" / "thresholds.py"
    text = path.read_text("utf-8")
    headings = {number: found for number, line in enumerate(text.splitlines()) if (found := HEADING.match(line))}
    body = ast.parse(text).body
    for at, each in enumerate(body):
        if not isinstance(each, ast.Assign):
            continue
        names = tuple(name.id for name in ast.walk(each.targets[0]) if isinstance(name, ast.Name))
        above = [found for number, found in headings.items() if number < each.lineno]
        below = body[at + 1] if at + 1 < len(body) else None
        if not above or not isinstance(below, ast.Expr) or not isinstance(below.value, ast.Constant):
            raise ValueError(f"{', '.join(names)}: say below it what it decides, and its source there or in a heading")
        decides, _, source = str(below.value.value).partition(" Source: ")
        values = tuple(getattr(thresholds, name) for name in names)
        yield Threshold(above[-1]["heading"], names, values, decides, (source or above[-1]["source"]).rstrip("."))


def table() -> str:
    rows, heading = ["\n| name | value | what it decides | source |\n| --- | --- | --- | --- |\n"], ""
    for each in every():
        if each.heading != heading:
            heading = each.heading
            rows.append(f"| **{heading}** | | | |\n")
        names = ", ".join(f"`{name}`" for name in each.names)
        rows.append(f"| {names} | {', '.join(map(_shown, each.values))} | {each.decides} | {each.source} |\n")
    return "".join([*rows, "\n"])


def _shown(value: Any) -> str:
    if isinstance(value, range):
        return f"{value.start} to {value.stop - 1}"
    if isinstance(value, tuple):
        return "; ".join(" at ".join(f"{each:g}" for each in pair) for pair in value)
    return f"{value:.4g}"


def page(text: str) -> str:
    """Return the page with its table."""
    return TABLE.sub(lambda _: table(), text)
