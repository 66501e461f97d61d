"""A verify as rows: one for each figure, each measurement without a figure, and each host that was not measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from nodetune.foundation import text
from nodetune.report.lines import NOT_REACHED
from nodetune.verify.model import Verdict
from nodetune.verify.run import HostVerification

HEAD = ("host", "status", "measurement", "metric", "subject", "value", "unit", "expected", "reason")


def rows(proofs: Iterable[HostVerification]) -> Iterator[Sequence[str]]:
    """Return the rows by host, in the order of measurement."""
    for proof in proofs:
        if proof.state != "ok":
            yield proof.host, NOT_REACHED, "", "", "", "", "", "", f"{proof.state}: {proof.message}"
        for verdict in proof.verdicts:
            yield proof.host, *_figure(verdict)
        for each in proof.unmeasured:
            yield proof.host, each.status, each.measurement, each.metric, each.subject, "", "", "", each.reason


def _figure(verdict: Verdict) -> tuple[str, ...]:
    figure, expected = verdict.figure, verdict.expected
    named = verdict.status, figure.measurement, figure.metric, figure.subject
    target = text.value(expected.bound) if expected else ""
    return *named, text.value(figure.value), figure.unit, target, verdict.suspect or verdict.reason
