"""Records from hosts → figures. This module validates them: data from a host is untrusted."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from nodetune.foundation import text
from nodetune.verify import catalogue
from nodetune.verify.catalogue import takes_two_hosts
from nodetune.verify.model import FAILED, SKIP, Figure, Unmeasured

MAX_SAMPLES = 10_000
DEEPEST = 4
LARGEST = 1e15
MAX_CONDITION = 1e20
BETTER = ("higher", "lower")


def read(host: str, value: Any) -> Figure | Unmeasured:
    """Read one untrusted record. An invalid record is a failed measurement."""
    return of(host, record(value))


def record(value: Any, asked: Collection[str] = ()) -> dict[str, Any]:
    """Return the record for `of`: complete and safe, or a failed one with the reason.

    `asked`: the allowed measurements.
    """
    if not isinstance(value, Mapping):
        return {"measurement": min(asked, default="unknown"), FAILED: "its record is not an object"}
    texts = {key: _text(value, key) for key in ("measurement", "metric", "subject", "unit")}
    if asked and texts["measurement"] not in asked:
        return {"measurement": min(asked), FAILED: "the host sent a figure that was not requested"}
    for status in (SKIP, FAILED):
        if status in value:
            return {**texts, status: text.plain(value[status])}
    samples, better = _numbers(value.get("samples")), value.get("better", "higher")
    if not texts["measurement"] or not texts["subject"] or not samples or better not in BETTER:
        return {**texts, FAILED: "the host sent an invalid figure"}
    about = value.get("about")
    return {**texts, "samples": samples, "better": better, "about": safe(about) if isinstance(about, Mapping) else {}}


def of(host: str, known: Mapping[str, Any]) -> Figure | Unmeasured:
    """Return the figures of a record that `record` returned."""
    name, metric, subject = (known.get(key, "") for key in ("measurement", "metric", "subject"))
    for status in (SKIP, FAILED):
        if status in known:
            return Unmeasured(host, name or "unknown", status, known[status], metric, subject)
    runs = (tuple(known["samples"]),)
    return Figure(host, name, metric or name, subject, runs, known["unit"], known["better"], known["about"])


def _text(record: Mapping[str, Any], key: str) -> str:
    found = record.get(key)
    return text.plain(found, 80) if isinstance(found, str) else ""


def _numbers(found: Any) -> list[float]:
    """Return the numbers if all are valid samples (not negative, no overflow in a sum), else nothing."""
    if not isinstance(found, list) or len(found) > MAX_SAMPLES:
        return []
    if not all(type(each) in (int, float) and 0 <= each < LARGEST for each in found):
        return []
    return [float(each) for each in found]


def safe(found: Any, depth: int = 0) -> Any:
    """Return the same JSON data with texts that are safe for a terminal, cut at the depth that is used."""
    if isinstance(found, Mapping) and depth < DEEPEST:
        return {text.plain(key, 80): safe(each, depth + 1) for key, each in found.items()}
    if isinstance(found, list) and depth < DEEPEST:
        return [safe(each, depth + 1) for each in found]
    if found is None or isinstance(found, bool):
        return found
    if isinstance(found, int | float):
        return found if abs(found) < MAX_CONDITION else None  # a whole number may be one that no float can hold
    return text.plain(found)


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
    "streams",
    "compatibility",
    "processes",
    "instances",
    "mps",
)
"""Keys of `about` on which a figure depends. Figures are compared only if all of these are equal. The rest of `about`
(clocks, temperatures, NCCL's path …) is observed."""


def conditions(figure: Figure) -> dict[str, Any]:
    """Return the conditions that must be equal for comparable figures; NCCL's version without the patch level."""
    found = {key: figure.about[key] for key in CONDITIONS if figure.about.get(key) is not None}
    if catalogue.of(figure.measurement).size_matters and "size" in figure.about:
        found["size"] = figure.about["size"]
    if figure.about.get("local") is None and "numa_node" in figure.about:  # near or far is not known: then which one
        found["numa_node"] = figure.about["numa_node"]
    if "nccl" in found:
        found["nccl"] = minor(str(found["nccl"]))
    return found


def size(figure: Figure) -> int:
    """Return the bytes of a message or buffer; 0 if the host reports none."""
    found = figure.about.get("size")
    return found if isinstance(found, int) and 0 < found < LARGEST else 0


def title(figure: Figure, sized: bool = True) -> str:
    """Return the measurement and metric, with what distinguishes them from others of the same name."""
    about = figure.about
    name = figure.measurement if figure.metric == figure.measurement else f"{figure.measurement} {figure.metric}"
    told = sized and catalogue.of(figure.measurement).scope == "collective" and size(figure)
    amount = f" {text.size(size(figure))}" if told else ""
    over = f" over {text.plain(about['network'], 20)}" if about.get("network") else ""
    return f"{name}{_variant(figure)}{amount}{over}"


def _variant(figure: Figure) -> str:
    about = figure.about
    words = {
        "local": {False: "far"},
        "together": {True: "together"},
        "in_place": {True: "in place"},
        "peer_access": {False: "through the host"},
    }
    if figure.metric == "remote":  # the name says it
        return ""
    told = [
        names[about[key]] for key, names in words.items() if isinstance(about.get(key), bool) and about[key] in names
    ]
    return f" {', '.join(told)}" if told else ""


def minor(version: str) -> str:
    """Shorten `2.28.9` to `2.28`."""
    return ".".join(version.split(".")[:2])


Key = tuple[Any, ...]


def kind(figure: Figure) -> Key:
    """Return the measurement, its metric and the conditions, without the subject; hashable."""
    return figure.measurement, figure.metric, repr(sorted(conditions(figure).items(), key=lambda item: item[0]))


def key(figure: Figure) -> Key:
    """Identify a figure of one host: its kind and its subject."""
    return *kind(figure), figure.subject


def place(figure: Figure) -> Key:
    """Identify a figure of a run: its host, kind and subject. Either of two hosts may report a figure."""
    return "" if takes_two_hosts(figure.measurement) else figure.host, *key(figure)


def merged(figures: Iterable[Figure]) -> list[Figure]:
    """Merge figures of several runs, each with all of its runs, in order of first appearance."""
    found: dict[Key, Figure] = {}
    for each in figures:
        known = found.get(place(each))
        found[place(each)] = joined(known, each) if known else each
    return list(found.values())


def joined(first: Figure, second: Figure) -> Figure:
    """Return the second figure with the runs of both."""
    disturbed = (*first.run_disturbances, *second.run_disturbances)
    return replace(second, runs=(*first.runs, *second.runs), disturbed=disturbed if any(disturbed) else ())
