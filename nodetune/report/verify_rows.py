"""A verify as rows: one for each figure, each measurement without a figure, and each host that was not measured."""

from collections.abc import Iterable, Iterator, Sequence

from nodetune.foundation import text
from nodetune.report.lines import NOT_REACHED
from nodetune.verify.model import Verdict
from nodetune.verify.run import HostVerification

HEAD = ("host", "status", "measurement", "metric", "subject", "value", "unit", "expected", "reason")


def rows(verifications: Iterable[HostVerification]) -> Iterator[Sequence[str]]:
    """Return the rows by host, in the order of measurement."""
    for verification in verifications:
        if verification.state != "ok":
            nothing = [""] * (len(HEAD) - 3)
            yield verification.host, NOT_REACHED, *nothing, f"{verification.state}: {verification.message}"
        for verdict in verification.verdicts:
            yield verification.host, *_figure(verdict)
        for each in verification.unmeasured:
            yield verification.host, each.status, each.measurement, each.metric, each.subject, "", "", "", each.reason


def _figure(verdict: Verdict) -> tuple[str, ...]:
    figure, expected = verdict.figure, verdict.expected
    named = verdict.status, figure.measurement, figure.metric, figure.subject
    target = text.value(expected.bound) if expected else ""
    return *named, text.value(figure.value), figure.unit, target, verdict.suspect or verdict.reason
