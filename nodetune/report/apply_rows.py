"""An apply as rows: one for each step on a host and one for each unreachable host."""

from collections.abc import Iterable, Iterator, Sequence

from nodetune.api.model import HostResult
from nodetune.remediation.outcomes import StepOutcome
from nodetune.report.lines import NOT_REACHED

HEAD = ("host", "outcome", "check", "before", "after", "disruption", "reason")


def rows(done: Iterable[StepOutcome], lost: Iterable[HostResult]) -> Iterator[Sequence[str]]:
    """Return the rows: the steps in the order of the plan, then the hosts that were not reached."""
    for step in done:
        yield step.host, step.outcome, step.check, step.before, step.after, step.disruption, step.reason
    for each in lost:
        yield each.host, NOT_REACHED, "", "", "", "", f"{each.state}: {each.message}"
