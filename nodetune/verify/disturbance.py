"""Find what disturbed a figure: other load on the CPUs, the GPU or the disk of its host during the measurement. Pure.

A figure that passes in spite of other load passes. A disturbed figure below its target proves nothing about a part; nor
is it a peer of others or suitable for a baseline.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from nodetune.foundation import by_key, text
from nodetune.statistics.thresholds import MAX_OTHERS_SHARE, MIN_OTHERS_SECONDS
from nodetune.verify import catalogue
from nodetune.verify.catalogue import takes_two_hosts
from nodetune.verify.diagnosis import gpus
from nodetune.verify.diagnosis import hosts as hosts_of
from nodetune.verify.model import Figure

SETTINGS = ("applications_clocks_setting", "hw_power_brake_slowdown", "sync_boost", "display_clock_setting")
"""Clock event reasons that are not a GPU fault: its clocks were set, or the server requests power saving."""

Others = Mapping[tuple[str, str], Mapping[str, Any]]
"""The load that a host reported after a measurement (nodetune/measurements/host/other_load.py), by (host, measurement)."""


def marked(figure: Figure, told: Others) -> Figure:
    """Return the figure of one run with its disturbance."""
    where = _hosts(figure, told)
    found = [
        text_ if len(where) == 1 else f"{host}: {text_}"
        for host in where
        for text_ in _reasons(figure, told.get((host, figure.measurement), {}))
    ]
    return replace(figure, disturbed=("; ".join(found),))


def _hosts(figure: Figure, told: Others) -> list[str]:
    """Return the hosts that took part."""
    if takes_two_hosts(figure.measurement):
        return hosts_of(figure.subject)
    if figure.about.get("nodes", 1) != 1:
        return sorted(host for host, measurement in told if measurement == figure.measurement)
    return [figure.host]


def _reasons(figure: Figure, others: Mapping[str, Any]) -> Iterator[str]:
    share, stolen = _number(others.get("cpu")), _number(others.get("steal"))
    if share > MAX_OTHERS_SHARE and _number(others.get("cpu_seconds")) >= MIN_OTHERS_SECONDS:
        yield f"others used {share:.0%} of the CPUs{_names(others.get('processes'))}"
    if stolen > MAX_OTHERS_SHARE and _number(others.get("steal_seconds")) >= MIN_OTHERS_SECONDS:
        yield f"the hypervisor gave {stolen:.0%} of the CPU time to others"
    if _number(figure.about.get("others_io")) > MAX_OTHERS_SHARE:
        yield f"{_number(figure.about['others_io']):.0%} of what the disk moved was for others"
    yield from _on_gpus(figure, others.get("gpus"))


def _names(processes: Any) -> str:
    """Return ` (python3 71 72, fio 80)`."""
    known = [each for each in processes if isinstance(each, Mapping)] if isinstance(processes, list) else []
    ids = by_key((text.plain(each.get("name", ""), 40), text.plain(each.get("pid", ""), 10)) for each in known)
    return f" ({', '.join(' '.join([name, *numbers]) for name, numbers in ids.items())})" if ids else ""


def _on_gpus(figure: Figure, lines: Any) -> Iterator[str]:
    mine = gpus(figure.subject)
    several = catalogue.of(figure.measurement).scope == "collective" or figure.about.get("together")
    for line in lines if isinstance(lines, list) else ():
        if not isinstance(line, Mapping) or not (several or line.get("gpu") in mine):
            continue
        gpu = text.plain(line.get("gpu", ""), 10)
        if line.get("users"):
            yield f"{gpu} was also used by {text.plain(line['users'], 200)}"
        settings = [each for each in str(line.get("held", "")).split("+") if each in SETTINGS]
        if settings:
            yield f"the clocks of {gpu} were held down ({', '.join(settings)})"


def _number(found: Any) -> float:
    return found if isinstance(found, int | float) else 0.0


def doubt(figure: Figure) -> str:
    """Return the disturbance that makes a part not suspect for this figure; empty if none."""
    return "" if catalogue.of(figure.measurement).finds_others else figure.disturbance


def lines(figures: Iterable[Figure]) -> list[tuple[str, str]]:
    """Return (measurement, what disturbed it), each once, in order."""
    return list(dict.fromkeys((each.measurement, each.disturbance) for each in figures if each.disturbance))
