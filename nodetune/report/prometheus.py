"""An audit in Prometheus' text format, for node-exporter's textfile collector (which rejects timestamps).

https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
"""

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TextIO

from nodetune import __version__
from nodetune.api.model import SEVERITIES, Check, HostResult
from nodetune.foundation import text as plain_text
from nodetune.report.areas import area

STATUSES = ("pass", "fail", "unknown", "waived", "skip")
HELP = {
    "info": "Version of nodetune that made this audit.",
    "timestamp_seconds": "Time when this audit ended.",
    "reached": "1 for each audited host, 0 for each unreachable host, with its state.",
    "checks": "Checks of the host by result.",
    "failing_checks": "Failing checks of the host by severity.",
    "finding": "1 for each failing check of each host.",
}
Sample = tuple[str, Mapping[str, str], float]
MAX_LABEL_LENGTH = 200
ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}


def write(results: Iterable[HostResult], stream: TextIO, checks: Mapping[str, Check], now: float | None = None) -> None:
    """Write the samples by metric, as the format requires."""
    write_samples(stream, "nodetune_audit", HELP, _every(results, checks, time.time() if now is None else now))


def _every(results: Iterable[HostResult], checks: Mapping[str, Check], ended: float) -> Iterator[Sample]:
    yield "info", {"version": __version__}, 1
    yield "timestamp_seconds", {}, ended
    seen: Counter[str] = Counter()
    for result in results:
        host = label(result.host)
        seen[host] += 1
        own = host if seen[host] == 1 else f"{host} #{seen[host]}"  # the same series twice would void the whole file
        yield from samples(result, own, checks)


def write_samples(stream: TextIO, prefix: str, helps: Mapping[str, str], given: Iterable[Sample]) -> None:
    """Write samples by metric, as the format requires; of several with the same labels, which would void the file, the first."""
    found: dict[str, dict[str, float]] = {name: {} for name in helps}
    for name, labels, value in given:
        found[name].setdefault(line(f"{prefix}_{name}", labels, 0).rpartition(" ")[0], value)
    for name, told in found.items():
        if told:
            stream.write(f"# HELP {prefix}_{name} {helps[name]}\n# TYPE {prefix}_{name} gauge\n")
            stream.writelines(f"{series} {float(value):.15g}\n" for series, value in told.items())


def samples(result: HostResult, host: str, checks: Mapping[str, Check]) -> Iterator[Sample]:
    """Yield (name, labels, value) of one host. Zeros are included so that alerts end."""
    yield "reached", {"host": host, "state": label(result.state)}, result.state == "ok"
    if result.state != "ok":
        return
    statuses = Counter(found.status for found in result.findings)
    failing = Counter(found.severity for found in result.failing())
    for status in STATUSES:
        yield "checks", {"host": host, "status": status}, statuses[status]
    for severity in SEVERITIES:
        yield "failing_checks", {"host": host, "severity": severity}, failing[severity]
    for found in result.failing():
        named = {"check": label(found.check), "area": label(area(found, checks)), "severity": found.severity}
        yield "finding", {"host": host, **named}, 1


def label(text: str) -> str:
    """Make the text of a label safe and short, but do not escape it yet."""
    return plain_text.plain(text, MAX_LABEL_LENGTH)


def line(name: str, labels: Mapping[str, str], value: float) -> str:
    """Return one sample."""
    inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{f'{{{inside}}}' if inside else ''} {float(value):.15g}\n"


def _escaped(text: str) -> str:
    return re.sub(r'[\\"\n]', lambda found: ESCAPES[found[0]], text)
