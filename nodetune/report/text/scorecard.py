"""Which criteria of a scorecard the hosts meet, for people at a terminal."""

from collections.abc import Sequence
from typing import TextIO

from nodetune.api.model import HostResult
from nodetune.audit import scorecard_status
from nodetune.audit.scorecard_status import NOT_JUDGED
from nodetune.audit.scorecards import Scorecard
from nodetune.foundation import text
from nodetune.report.sections import UNKNOWN, CommandOptions
from nodetune.report.sections import scorecard as scorecard_rows
from nodetune.report.sections.scorecard import CommandGroup, CriteriaRow, Rest
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
    """Print the counts, what fails with the command that acts on it, what is not judged and why; the rest with `full`."""
    score, out = scorecard_status.score(card, results), Lines(screen(stream))
    out.line((scorecard_rows.headline(score), "bold"))
    out.line((scorecard_rows.edition(score), "dim"))
    explained = ""
    for part in scorecard_rows.parts(score, results, commands):
        if part.section == UNKNOWN:
            explained = part.command
        else:
            _part(out, part, len(results), full=full)
    rest = list(scorecard_rows.rest(score))
    for each in rest:
        if score.reached and each.status == NOT_JUDGED:
            _rest(out, each, full=full)
    if explained:
        _to_do(out, explained)
    out.gap()
    if lost := [(each.state, each.host, each.message) for each in results if each.state != "ok"]:
        unreached(out, lost, commands.audit())
        out.gap()
    if not full:
        out.whole("every criterion: ", (commands.audit(f"--against {card.name} --full"), "green"))
        return
    for each in rest:
        if each.status != NOT_JUDGED:
            _rest(out, each, full=True)
    out.gap()


def _rest(out: Lines, rest: Rest, *, full: bool) -> None:
    out.gap()
    out.line((rest.title, "bold"), f": {rest.why}" if rest.why else "")
    rows = rest.rows if full or len(rest.rows) <= MAX_LINES else rest.rows[: MAX_LINES - 1]
    for ids, words, own in rows:
        out.line((ids, "bold"), f"  {words}", f" ({own})" if own else "", indent=INDENT, hang=INDENT)
    _left(out, len(rest.rows) - len(rows))


def _left(out: Lines, left: int) -> None:
    if left:
        out.line((f"… and {text.count(left, 'more row')}", "dim"), indent=INDENT)


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
    _left(out, len(part.rows) - len(rows))
    _to_do(out, part.command)


def _to_do(out: Lines, command: str) -> None:
    out.whole((f"{'to do':<{SEVERITY}}", "dim"), (command, "green"), indent=INDENT)


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
