"""The effect of an apply in figures, for people and as JSON data: worse figures first and singly, others folded."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Sequence
from typing import Literal, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from nodetune.foundation import by_key, nodeset, text
from nodetune.remediation.outcomes import PENDING, StepOutcome
from nodetune.report.text.lines import Lines, console
from nodetune.report.text.verify_changes import STYLES, lost_runs
from nodetune.report.text.verify_table import WIDE, amount, number
from nodetune.verify import figures
from nodetune.verify.before_after import AFTER, GONE, UNCHANGED, BeforeAfterResult, HostMissing
from nodetune.verify.compare import BETTER, LEVEL, SAME, UNSURE, WORSE, FigureChange

NAMES = ("", "measurement", "of", "hosts", "before", "after", "change", "from-to", "seen from")
RIGHT = ("before", "after", "change", "seen from")
FOLDED = {"measurement": 12, "of": 6, "hosts": 8}
"""Columns that may wrap, with their minimum width."""

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
        _print_table(out, verified.changes, single)
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


def _print_table(out: Console, changes: Sequence[FigureChange], single: bool) -> None:
    shown = [name for name in NAMES if _has_room(name, single, out.width >= WIDE)]
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in shown:
        justify: Literal["left", "right"] = "right" if name in RIGHT else "left"
        table.add_column(name, no_wrap=name not in FOLDED, overflow="fold", justify=justify, min_width=FOLDED.get(name))
    for cells in map(_cells, folded(changes)):
        table.add_row(*(cells[name] for name in shown))
    out.print(table)


def _has_room(name: str, single: bool, wide: bool) -> bool:
    """Return whether a column fits: a narrow terminal drops explanations but never figures."""
    return {"hosts": not single, "from-to": wide, "seen from": wide or single}.get(name, True)


def folded(changes: Iterable[FigureChange]) -> list[list[FigureChange]]:
    """Fold changes into lines, in the order of STYLES: one line for each worse one, others by what was measured."""
    found: dict[tuple[str, ...], list[FigureChange]] = {}
    for each in changes:
        figure = each.before
        own = (figure.host, figure.subject) if each.status == WORSE else ()
        found.setdefault((each.status, figures.title(figure), _family(figure.subject), figure.unit, *own), []).append(
            each
        )
    return sorted(found.values(), key=lambda rows: list(STYLES).index(rows[0].status))


def _cells(rows: Sequence[FigureChange]) -> dict[str, str | Text]:
    """Return column → text of one line. For several figures, it shows medians and their changes."""
    first, changes = rows[0], [each.change for each in rows]
    before, after = (statistics.median(values) for values in zip(*map(_values, rows), strict=True))
    seen = [each.smallest for each in rows if each.smallest is not None]
    return {
        "": Text(first.status, STYLES[first.status]),
        "measurement": figures.title(first.before),
        "of": _subjects([each.before.subject for each in rows]),
        "hosts": text.plain(nodeset.fold(sorted({each.before.host for each in rows})), 40),
        "before": number(before),
        "after": f"{number(after)} {first.after.unit}",
        "change": f"{after / before - 1:+.1%}" if before else "",
        "from-to": f"{min(changes):+.1%} to {max(changes):+.1%}" if len(rows) > 1 else "",
        "seen from": f"{max(seen):.1%}" if seen else "",
    }


def _values(change: FigureChange) -> tuple[float, float]:
    return change.before.value, change.after.value


def _family(subject: str) -> str:
    """Return `GPU→GPU` for `GPU0→GPU1`: the kind of the subject."""
    return re.sub(r"\d+", "", subject) if subject.startswith(("GPU", "cpu", "node")) else subject


def _subjects(names: Sequence[str]) -> str:
    """Return the only subject, or the number of subjects and their kind."""
    known = list(dict.fromkeys(names))
    return text.plain(known[0], 24) if len(known) == 1 else f"{len(known)} x {_family(known[0])}"


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
        words = " ".join(part for part in ("nodetune verify", asked, f"--suite {verified.wanted.suite}") if part)
        lines.line(f"{more}: ", (words, "green"), indent=GUTTER)


def _counts(changes: Sequence[FigureChange]) -> str:
    statuses = [each.status for each in changes]
    told = ", ".join(f"{statuses.count(each)} {each}" for each in (WORSE, BETTER, SAME, UNSURE) if each in statuses)
    judged = len(statuses) - statuses.count(UNSURE)
    return f"{told}; each at the {LEVEL:.0%} level" if judged else told
