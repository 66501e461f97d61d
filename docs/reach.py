"""Find the suites that measure a shipped figure. A figure that no suite measures is never used."""

from __future__ import annotations

from typing import Any

from nodetune.verify import catalogue, suites
from nodetune.verify.reference import Entry

PAIRS = "--pairs"
"""Measurements in no suite because they need two hosts."""

FOLDER = "--disk"
"""Those that need a folder."""

ONLY_WITH = {("gpu_p2p", "p2p_both"): "both"}
"""Metrics that an option of the measurement leaves out."""


def suites_of(entry: Entry) -> tuple[str, ...]:
    """Return the suites that measure it on a matching machine with enough memory for its size."""
    if catalogue.of(entry.measurement).scope == "pair":
        return (PAIRS,)
    if catalogue.of(entry.measurement).takes_folder:
        return (FOLDER,)
    if not catalogue.of(entry.measurement).suites:
        return (f"--only {entry.measurement}",)
    return tuple(name for name in suites.NAMES if any(_reaches(item, entry) for item in suites.suite(name)))


def _reaches(item: suites.Item, entry: Entry) -> bool:
    options: dict[str, Any] = item["options"]
    sizes = options.get("sizes") or catalogue.of(entry.measurement).sizes
    switch = ONLY_WITH.get((entry.measurement, entry.metric))
    return (
        item["name"] == entry.measurement
        and (switch is None or options.get(switch, True) is not False)
        and entry.metric in options.get("collectives", [entry.metric])
        and entry.size_from <= max(sizes, default=0)
    )
