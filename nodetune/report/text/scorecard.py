"""Which criteria of a scorecard the hosts meet, for people at a terminal."""

from collections.abc import Sequence
from typing import TextIO

from nodetune.api.model import HostResult
from nodetune.audit import scorecard_status
from nodetune.audit.scorecards import Scorecard
from nodetune.foundation import text
from nodetune.report.sections import CommandOptions
from nodetune.report.sections import scorecard as scorecard_rows
from nodetune.report.sections.scorecard import CommandGroup, CriteriaRow
from nodetune.report.text.audit import WITH_CHECKS, cut
from nodetune.report.text.host_names import fold, unreached
from nodetune.report.text.lines import STYLE, Lines, screen

INDENT = "  "
SEVERITY = 10
MAX_LINES = 14
"""Rows of a part; all of them with --full."""

WIDEST = {"criterion": 32, "check": 34, "hosts": 24}


def write(
    results: Sequence[HostResult], stream: TextIO, card: Scorecard, commands: CommandOptions, *, full: bool = False
) -> None:
    """Print the headline, what fails with the command that acts on it, and the number of the rest, or all with `full`."""
    score, out = scorecard_status.score(card, results), Lines(screen(stream))
    out.line((scorecard_rows.headline(score), "bold"))
    out.line((scorecard_rows.edition(score), "dim"))
    for part in scorecard_rows.parts(score, results, commands):
        _part(out, part, len(results), full=full)
    out.gap()
    if lost := [(each.state, each.host, each.message) for each in results if each.state != "ok"]:
        unreached(out, lost, commands.audit())
        out.gap()
    if not full:
        out.whole(
            "every criterion, and why it is not judged: ", (commands.audit(f"--against {card.name} --full"), "green")
        )
        return
    for title, why, criteria in scorecard_rows.rest(score):
        out.line((title, "bold"), f": {why}" if why else "")
        for ids, words in criteria:
            out.line(INDENT, (ids, "bold"), f"  {words}", hang=INDENT * 2)
        out.gap()


def _part(out: Lines, part: CommandGroup, hosts: int, *, full: bool) -> None:
    out.gap()
    out.line((f"{part.title} ({text.count(len(part.rows), 'row')})", "bold"))
    rows = part.rows if full or len(part.rows) <= MAX_LINES else part.rows[: MAX_LINES - 1]
    widths = {
        "criterion": min(max(len(row.criteria) for row in rows), WIDEST["criterion"]),
        "check": min(max(len(row.line.check) for row in rows), WIDEST["check"]),
        "hosts": min(max(len(_hosts(row, hosts)) for row in rows), WIDEST["hosts"]),
    }
    for row in rows:
        _row(out, row, hosts, widths)
    if left := len(part.rows) - len(rows):
        out.line((f"… and {text.count(left, 'more row')}", "dim"), indent=INDENT)
    out.whole((f"{'to do':<{SEVERITY}}", "dim"), (part.command, "green"), indent=INDENT)


def _row(out: Lines, row: CriteriaRow, hosts: int, widths: dict[str, int]) -> None:
    """Print one row; on a narrow screen, the second line says what was observed."""
    line, where = row.line, _hosts(row, hosts)
    style = STYLE.get(line.severity, "magenta")
    criteria = cut(row.criteria, widths["criterion"])
    head = f"{criteria:<{widths['criterion']}}  {cut(line.check, widths['check']):<{widths['check']}}"
    head += f"  {where:<{widths['hosts']}}" if where else ""
    seen = f"{line.subject}: {line.text}" if line.subject else line.text
    room = out.room() - len(INDENT) - SEVERITY - len(head) - 2
    alone = out.room() + 1 < WITH_CHECKS
    out.whole((f"{line.severity:<{SEVERITY}}", style), head, "" if alone else f"  {cut(seen, room)}", indent=INDENT)
    if alone:
        out.whole(cut(seen, out.room() - SEVERITY - len(INDENT)), indent=INDENT + " " * SEVERITY)


def _hosts(row: CriteriaRow, hosts: int) -> str:
    if hosts == 1:
        return ""
    if len(row.line.hosts) == hosts:
        return f"all {hosts} hosts"
    names = fold(row.line.hosts, WIDEST["hosts"])
    return names if len(names) <= WIDEST["hosts"] else f"{len(row.line.hosts)} of {hosts} hosts"
