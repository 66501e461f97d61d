"""Which criteria of a scorecard the hosts meet, as Markdown."""

from collections.abc import Iterator, Sequence
from typing import TextIO

from nodetune.api.model import HostResult
from nodetune.audit import scorecard_status
from nodetune.audit.scorecard_status import Scored
from nodetune.audit.scorecards import Scorecard
from nodetune.foundation import nodeset
from nodetune.report.markdown import cell, code, prose
from nodetune.report.sections import scorecard as scorecard_rows

HEAD = "| criterion | what it asks for | status | checks, hosts, or why not judged |\n| --- | --- | --- | --- |\n"


def write(results: Sequence[HostResult], stream: TextIO, card: Scorecard) -> None:
    """Write the headline and a table of all criteria."""
    score = scorecard_status.score(card, results)
    stream.write(f"# nodetune audit against {prose(card.title)}\n\n{prose(scorecard_rows.headline(score))}\n\n")
    stream.write(f"{prose(scorecard_rows.edition(score))}\n\n{HEAD}")
    stream.writelines(map(_row, score.rows))


def _row(row: Scored) -> str:
    cells = (code(row.criterion.name), prose(row.criterion.text), row.status, "; ".join(_told(row)))
    return f"| {' | '.join(map(cell, cells))} |\n"


def _told(row: Scored) -> Iterator[str]:
    """Yield the reasons for the status of a criterion."""
    for check, hosts in row.hosts.items():
        yield f"{code(check)} on {code(nodeset.fold(hosts), 80)}"
    if row.why:
        yield prose(row.why)
    if row.criterion.shown:
        yield prose(f"shown by {row.criterion.shown}")
    if not (row.hosts or row.why or row.criterion.shown):
        yield ", ".join(map(code, row.criterion.checks))
    if row.criterion.differs:
        yield prose(row.criterion.differs)
