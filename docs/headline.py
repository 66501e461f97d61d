"""The headline figures: what decides about a GPU node, and where it was measured. The first table of docs/project/figures.md."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from nodetune.verify import catalogue

HERE = Path(__file__).parent
RECORDINGS = HERE.parent / "tests" / "data" / "recordings" / "verify"
HEAD = """
## Headline figures

What decides about a GPU node, and where nodetune measured it: medians of each GPU and size, from the least to the most.

| figure | measured | where, when | `nodetune` … |
| --- | --- | --- | --- |
"""


class HeadlineError(Exception):
    """A row of headline.yml that says nothing, or something that its recording does not."""


def stated() -> dict[str, Any]:
    """Return what headline.yml says."""
    found: dict[str, Any] = yaml.safe_load((HERE / "headline.yml").read_text("utf-8"))
    return found


def table() -> Iterator[str]:
    """Yield the section, line by line. Raise HeadlineError."""
    data = stated()
    yield HEAD
    for row in data["rows"]:
        yield f"| {row['item']} | {' | '.join(_cells(row, data['recordings']))} |\n"


def _cells(row: Mapping[str, Any], recordings: Mapping[str, Any]) -> tuple[str, str, str]:
    ways = [way for way in ("figures", "ratio", "seen", "reason") if row.get(way)]
    if len(ways) != 1:
        raise HeadlineError(f"{row['item']}: needs one of figures, ratio, seen and reason")
    if ways == ["reason"]:
        return f"**not yet**: {row['reason']}", "", ""
    place = recordings[row["recording"]] if "recording" in row else row
    text = row["seen"] if "seen" in row else _computed(row)
    return text, f"{place['where']}; {place['when']}", f"`{row['command']}`"


def _computed(row: Mapping[str, Any]) -> str:
    if "ratio" in row:
        (products, _), (memory, _) = (_found(row, name) for name in row["ratio"])
        return f"{median(products) * 1e3 / median(memory):.0f}"
    return ", ".join(_in_words(name, *_found(row, name)) for name in row["figures"])


def _in_words(name: str, values: list[float], unit: str) -> str:
    """Return `h2d 55.3 to 55.4 GB/s`."""
    least, most = (f"{each:.0f}" if each >= 1000 else f"{each:.3g}" for each in (min(values), max(values)))
    metric = name.split()[1]
    return f"{metric} {least} {unit}" if least == most else f"{metric} {least} to {most} {unit}"


def _found(row: Mapping[str, Any], name: str) -> tuple[list[float], str]:
    """Return the medians of a figure in the row's recording, and their unit. Raise HeadlineError."""
    measurement, metric = name.split()
    if measurement not in catalogue.measurements():
        raise HeadlineError(f"{row['item']}: there is no measurement {measurement}")
    found = [
        each for each in _recorded(row["recording"]) if (each["measurement"], each["metric"]) == (measurement, metric)
    ]
    if not found:
        raise HeadlineError(f"{row['item']}: {row['recording']} has no figure {name}")
    return [median(each["samples"]) for each in found], found[0]["unit"]


@cache
def _recorded(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (RECORDINGS / f"{name}.jsonl").read_text("utf-8").splitlines()]
