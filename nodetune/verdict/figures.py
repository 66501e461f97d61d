"""Records as hosts send them → figures. What comes from a host is hostile until it has passed through here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from nodetune import show
from nodetune.verdict import FAILED, SKIP, Figure, Unmeasured

MOST_SAMPLES = 10_000
DEEPEST = 4
LARGEST = 1e15
BETTER = ("higher", "lower")


def read(host: str, record: Any) -> Figure | Unmeasured:
    """One record of a host. What cannot be understood is a measurement that failed."""
    if not isinstance(record, Mapping):
        return Unmeasured(host, "unknown", FAILED, "its record is no object")
    name, subject = _text(record, "measurement"), _text(record, "subject")
    metric = _text(record, "metric")
    for status in (SKIP, FAILED):
        if status in record:
            return Unmeasured(host, name, status, show.plain(record[status]), metric, subject)
    samples, better = _numbers(record.get("samples")), record.get("better", "higher")
    if not name or not subject or not samples or better not in BETTER:
        return Unmeasured(host, name or "unknown", FAILED, "its record is not understood", metric, subject)
    about = record.get("about")
    kept = _bounded(about, 0) if isinstance(about, Mapping) else {}
    return Figure(host, name, metric or name, subject, (samples,), _text(record, "unit"), better, kept)


def _text(record: Mapping[str, Any], key: str) -> str:
    found = record.get(key)
    return show.plain(found, 80) if isinstance(found, str) else ""


def _numbers(found: Any) -> tuple[float, ...]:
    """Numbers as something measured can have them (no negative ones, none that overflow in a sum), or nothing at all."""
    if not isinstance(found, list) or len(found) > MOST_SAMPLES:
        return ()
    numbers = [each for each in found if isinstance(each, int | float) and not isinstance(each, bool)]
    if len(numbers) != len(found):
        return ()
    try:
        kept = tuple(float(each) for each in numbers)
    except OverflowError:
        return ()
    return kept if all(0 <= each < LARGEST for each in kept) else ()


def _bounded(found: Any, depth: int) -> Any:
    """The same data with safe texts, and no deeper than what is used."""
    if isinstance(found, Mapping) and depth < DEEPEST:
        return {show.plain(key, 80): _bounded(each, depth + 1) for key, each in found.items()}
    if isinstance(found, list) and depth < DEEPEST:
        return [_bounded(each, depth + 1) for each in found]
    if found is None or isinstance(found, bool | int):
        return found
    if isinstance(found, float):
        return found if math.isfinite(found) else None
    return show.plain(found)


OF_PAIRS = ("tcp", "rdma")
"""Measurements that take two hosts; subjects name both."""

CONDITIONS = (
    "in_place",
    "dtype",
    "n",
    "data",
    "load",
    "gpus",
    "nodes",
    "nccl",
    "nvls",
    "local",
    "together",
    "threads",
    "cores_busy",
    "peer_access",
    "network",
    "rate",
    "layer",
    "block",
    "statistic",
)
"""What in `about` a figure depends on. Figures are only compared where all of these are the same. The rest of `about`
(clocks, temperatures, the way that NCCL took …) is what came out."""

SIZED = ("nccl", "disk", "rdma")
"""Measurements whose figures depend on `size`; others take what makes no difference, and what fits."""


def conditions(figure: Figure) -> dict[str, Any]:
    """What must be the same for two figures to be comparable; of NCCL's version only major and minor."""
    found = {key: figure.about[key] for key in CONDITIONS if figure.about.get(key) is not None}
    if figure.measurement in SIZED and "size" in figure.about:
        found["size"] = figure.about["size"]
    if figure.about.get("local") is None and "numa_node" in figure.about:  # near or far is not known: then which one
        found["numa_node"] = figure.about["numa_node"]
    if "nccl" in found:
        found["nccl"] = minor(str(found["nccl"]))
    return found


def size(figure: Figure) -> int:
    """Bytes of a message or buffer; 0 where the host tells none."""
    found = figure.about.get("size")
    return found if isinstance(found, int) and 0 < found < LARGEST else 0


def minor(version: str) -> str:
    """`2.28.9` → `2.28`."""
    return ".".join(version.split(".")[:2])


Key = tuple[Any, ...]


def kind(figure: Figure) -> Key:
    """Hashable: the measurement, its metric and the conditions, without the subject."""
    return figure.measurement, figure.metric, repr(sorted(conditions(figure).items(), key=lambda item: item[0]))


def key(figure: Figure) -> Key:
    """The same with the subject: what makes two figures of one host the same figure."""
    return *kind(figure), figure.subject


def place(figure: Figure) -> Key:
    """The same with the host: what makes two figures of a run the same. Of two hosts either may tell a figure."""
    return "" if figure.measurement in OF_PAIRS else figure.host, *key(figure)


def merged(figures: Iterable[Figure]) -> list[Figure]:
    """Figures that were measured in several runs, each as one with all of its runs; order of first appearance."""
    found: dict[Key, Figure] = {}
    for each in figures:
        known = found.get(place(each))
        runs = (*known.runs, *each.runs) if known else each.runs
        found[place(each)] = Figure(
            each.host, each.measurement, each.metric, each.subject, runs, each.unit, each.better, each.about
        )
    return list(found.values())
