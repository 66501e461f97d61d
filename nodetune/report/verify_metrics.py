"""A verify in Prometheus' text format, for node-exporter's textfile collector."""

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from nodetune.report.prometheus import Sample, label, write_samples
from nodetune.verify import figures
from nodetune.verify.model import FAILED, PASS, SHORT, SKIP, UNKNOWN, Figure
from nodetune.verify.run import HostVerification

HELP = {
    "timestamp_seconds": "Time when this verify ended.",
    "reached": "1 for each measured host, 0 for each that was not, with its state.",
    "figures": "Figures of the host by verdict, and measurements without one.",
    "figure": "Each figure, in its unit.",
    "target": "The worst value with which a figure passes.",
    "below_target": "1 for each figure below target, 0 for the others.",
}
STATUSES = (PASS, SHORT, UNKNOWN, SKIP, FAILED)


def write(verifications: Sequence[HostVerification], stream: TextIO, now: float | None = None) -> None:
    """Write the samples by metric."""
    ended: Sample = ("timestamp_seconds", {}, time.time() if now is None else now)
    write_samples(stream, "nodetune_verify", HELP, [ended, *_samples(verifications)])


def _samples(verifications: Iterable[HostVerification]) -> Iterator[Sample]:
    for each in verifications:
        host = label(each.host)
        yield "reached", {"host": host, "state": label(each.state)}, each.state == "ok"
        found = [*(one.status for one in each.verdicts), *(one.status for one in each.unmeasured)]
        for status in STATUSES if each.state == "ok" else ():
            yield "figures", {"host": host, "status": status}, found.count(status)
        for verdict in each.verdicts:
            labels = {"host": host, **_labels(verdict.figure)}
            yield "figure", {**labels, "unit": label(verdict.figure.unit)}, verdict.figure.value
            yield "below_target", labels, verdict.status == SHORT
            if verdict.expected:
                yield "target", labels, verdict.expected.bound


def _labels(figure: Figure) -> dict[str, str]:
    """Return the labels that no other figure of the host has."""
    held = " ".join(f"{name}={value}" for name, value in sorted(figures.conditions(figure).items()))
    named = {"measurement": figure.measurement, "metric": figure.metric, "subject": figure.subject, "conditions": held}
    return {name: label(text) for name, text in named.items()}
