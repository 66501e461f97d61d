"""The effect of an apply in figures, for people and as JSON data: worse figures first and singly, others folded."""

import shlex
from collections.abc import Iterable, Sequence
from typing import TextIO

from nodetune.foundation import by_key, nodeset, text
from nodetune.remediation.outcomes import PENDING, StepOutcome
from nodetune.report.text.lines import Lines, console
from nodetune.report.text.verify_changes import STYLES, counts, lost_runs, print_table
from nodetune.report.text.verify_table import amount, number
from nodetune.verify import figures
from nodetune.verify.before_after import AFTER, GONE, UNCHANGED, BeforeAfterResult, HostMissing
from nodetune.verify.compare import LEVEL, UNSURE, WORSE, FigureChange

MAX_NAMES = 8
GUTTER = " " * 11


def print_gain(
    stream: TextIO, verified: BeforeAfterResult, done: Iterable[StepOutcome], asked: str, single: bool
) -> None:
    """Print how the figures differ before and after.

    `asked`: the options that name the hosts, for the proposed command; `done`: the outcomes of the fixes.
    """
    out = console(stream)
    lines = Lines(out)
    lines.line("")
    lines.line(
        ("Effect of the changes", "bold"), f"  suite {verified.wanted.suite}, {verified.wanted.repeat} runs each"
    )
    if verified.changes:
        print_table(out, verified.changes, single)
    _print_missing(lines, verified, single)
    _print_waiting(lines, verified, done, single)
    _print_short(lines, verified, asked, single)
    lines.line((_counts(verified.changes) or "no comparable figures", "bold"))
    if lost_runs(verified.changes):
        lines.line(lost_runs(verified.changes))
    if verified.worse:
        what = text.count(len(verified.worse), "figure")
        where = "" if single else f" on {nodeset.fold(sorted({each.before.host for each in verified.worse}))}"
        lines.line((f"SLOWER than before: {what}{where}", STYLES[WORSE]))
    lines.line("")


def _print_missing(lines: Lines, verified: BeforeAfterResult, single: bool) -> None:
    """Print the missing figures, with hosts folded."""
    same = by_key(_joined(verified.missing))
    for (when, state, message), hosts in list(same.items())[:MAX_NAMES]:
        style = "" if state == UNCHANGED else "bold magenta"
        lines.line((f"{state:<11}", style), "" if single else f"{nodeset.fold(hosts)}  ", f"not measured {when}")
        lines.line(text.plain(message, 300), indent=GUTTER)
    if len(same) > MAX_NAMES:
        lines.line(f"… and {len(same) - MAX_NAMES} more: --format json lists all", indent=GUTTER)


def _joined(missing: Sequence[HostMissing]) -> list[tuple[tuple[str, str, str], str]]:
    """Return ((when, state, message), host), with the missing figures of each host joined."""
    told = [((each.when, each.state, each.message), each.host) for each in missing if each.state != GONE]
    for host, names in by_key((each.host, each.message) for each in missing if each.state == GONE).items():
        more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
        told.append(((AFTER, GONE, text.names(names[:MAX_NAMES]) + more), host))
    return told


def _print_waiting(lines: Lines, verified: BeforeAfterResult, done: Iterable[StepOutcome], single: bool) -> None:
    """Print that the figures do not include changes that take effect after a reboot."""
    measured = {each.host for each in verified.late}
    waiting = sorted({each.host for each in done if each.outcome == PENDING} & measured)
    if waiting:
        where = "" if single else f" on {nodeset.fold(waiting)}"
        lines.line(("note       ", "cyan"), f"not measured: settings that need the next boot{where}")


def _print_short(lines: Lines, verified: BeforeAfterResult, asked: str, single: bool) -> None:
    """Print figures below target, even if the changes did not cause them."""
    for each in verified.short[:MAX_NAMES]:
        figure, expected = each.figure, each.expected
        least = "at least" if figure.sign > 0 else "at most"
        bound = f", expected {least} {number(expected.bound)} ({expected.provenance})" if expected else ""
        where = "" if single else f"{figure.host} "
        lines.line(("below      ", STYLES[WORSE]), f"{where}{figures.title(figure)} {figure.subject}")
        lines.line(f"{amount(figure)}{bound}", indent=GUTTER)
    for found in verified.findings[:MAX_NAMES]:
        lines.line(("below      ", STYLES[WORSE]), "" if single else f"{found.host} ", found.title)
    count = len(verified.short) + len(verified.findings)
    if count:
        more = f"all {count}, with suspects" if count > MAX_NAMES else "with suspects"
        words = " ".join(part for part in ("nodetune verify", asked, shlex.join(verified.wanted.words)) if part)
        lines.line(f"{more}: ", (words, "green"), indent=GUTTER)


def _counts(changes: Sequence[FigureChange]) -> str:
    judged = sum(each.status != UNSURE for each in changes)
    return f"{counts(changes)}; each at the {LEVEL:.0%} level" if judged else counts(changes)
