"""What an apply brought, by figures, for people and as JSON data: what became worse first and one by one, the rest folded."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from nodetune import nodeset, show
from nodetune.apply import PENDING, Done
from nodetune.gain import AFTER, GONE, UNCHANGED, Gain, Missing
from nodetune.report import verify_data
from nodetune.report.text import Lines, console
from nodetune.report.verify_changes import STYLES
from nodetune.report.verify_table import WIDE, amount, number, title
from nodetune.verdict.compare import BETTER, LEVEL, SAME, UNSURE, WORSE, Change

NAMES = ("", "measurement", "of", "hosts", "before", "after", "change", "from-to", "seen from")
RIGHT = ("before", "after", "change", "seen from")
FOLDED = {"measurement": 20, "of": 8, "hosts": 8}
"""Columns that may be broken, and the least that they are given."""

MOST_NAMES = 8
GUTTER = " " * 11


def print_gain(stream: TextIO, gain: Gain, done: Iterable[Done], asked: str, single: bool) -> None:
    """`asked`: the options that name the hosts, for the command that is proposed; `done`: what became of the steps."""
    out = console(stream)
    lines = Lines(out)
    lines.line("")
    lines.line(("What the changes brought", "bold"), f"  suite {gain.wanted.suite}, {gain.wanted.runs} runs each")
    if gain.changes:
        _print_table(out, gain.changes, single)
    _print_missing(lines, gain, single)
    _print_waiting(lines, gain, done, single)
    _print_short(lines, gain, asked, single)
    lines.line((_counts(gain.changes) or "nothing can be said", "bold"))
    if gain.worse:
        what = "1 figure" if len(gain.worse) == 1 else f"{len(gain.worse)} figures"
        where = "" if single else f" on {nodeset.fold(sorted({each.before.host for each in gain.worse}))}"
        lines.line((f"SLOWER than before: {what}{where}", STYLES[WORSE]))
    lines.line("")


def _print_table(out: Console, changes: Sequence[Change], single: bool) -> None:
    shown = [name for name in NAMES if _has_room(name, single, out.width >= WIDE)]
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in shown:
        justify: Literal["left", "right"] = "right" if name in RIGHT else "left"
        table.add_column(name, no_wrap=name not in FOLDED, overflow="fold", justify=justify, min_width=FOLDED.get(name))
    for cells in map(_cells, folded(changes)):
        table.add_row(*(cells[name] for name in shown))
    out.print(table)


def _has_room(name: str, single: bool, wide: bool) -> bool:
    """On a narrow terminal figures make way: first those of before, with several hosts those of after too."""
    return {"hosts": not single, "before": wide, "after": wide or single, "from-to": wide}.get(name, True)


def folded(changes: Iterable[Change]) -> list[list[Change]]:
    """Changes that share a line, in the order of STYLES: worse ones alone, others by what was measured."""
    found: dict[tuple[str, ...], list[Change]] = {}
    for each in changes:
        figure = each.before
        own = (figure.host, figure.subject) if each.status == WORSE else ()
        found.setdefault((each.status, title(figure), _family(figure.subject), figure.unit, *own), []).append(each)
    return sorted(found.values(), key=lambda rows: list(STYLES).index(rows[0].status))


def _cells(rows: Sequence[Change]) -> dict[str, str | Text]:
    """One line: column → text. Of several figures the medians, and what all of them would have shown."""
    first, changes = rows[0], [each.change for each in rows]
    before, after = (statistics.median(values) for values in zip(*map(_values, rows), strict=True))
    seen = [each.smallest for each in rows if each.smallest is not None]
    return {
        "": Text(first.status, STYLES[first.status]),
        "measurement": title(first.before),
        "of": _subjects([each.before.subject for each in rows]),
        "hosts": show.plain(nodeset.fold(sorted({each.before.host for each in rows})), 40),
        "before": number(before),
        "after": f"{number(after)} {first.after.unit}",
        "change": f"{statistics.median(changes):+.1%}",
        "from-to": f"{min(changes):+.1%} to {max(changes):+.1%}" if len(rows) > 1 else "",
        "seen from": f"{max(seen):.1%}" if seen else "",
    }


def _values(change: Change) -> tuple[float, float]:
    return change.before.value, change.after.value


def _family(subject: str) -> str:
    """`GPU→GPU` of `GPU0→GPU1`: what is of the same kind."""
    return re.sub(r"\d+", "", subject) if subject.startswith(("GPU", "cpu", "node")) else subject


def _subjects(names: Sequence[str]) -> str:
    """The one subject, or how many of which kind."""
    known = list(dict.fromkeys(names))
    return show.plain(known[0], 24) if len(known) == 1 else f"{len(known)} x {_family(known[0])}"


def _print_missing(lines: Lines, gain: Gain, single: bool) -> None:
    """What was not measured, with hosts folded."""
    same: dict[tuple[str, str, str], list[str]] = {}
    for host, when, state, message in _joined(gain.missing):
        same.setdefault((when, state, message), []).append(host)
    for (when, state, message), hosts in list(same.items())[:MOST_NAMES]:
        style = "" if state == UNCHANGED else "bold magenta"
        lines.line((f"{state:<11}", style), "" if single else f"{nodeset.fold(hosts)}  ", f"not measured {when}")
        lines.line(show.plain(message, 300), indent=GUTTER)
    if len(same) > MOST_NAMES:
        lines.line(f"… and {len(same) - MOST_NAMES} more: --format json lists all", indent=GUTTER)


def _joined(missing: Iterable[Missing]) -> list[tuple[str, str, str, str]]:
    """The figures of a host that have gone, as one."""
    lost: dict[str, list[str]] = {}
    for each in missing:
        if each.state == GONE:
            lost.setdefault(each.host, []).append(each.message)
    told = [(each.host, each.when, each.state, each.message) for each in missing if each.state != GONE]
    for host, names in lost.items():
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        told.append((host, AFTER, GONE, show.names(names[:MOST_NAMES]) + more))
    return told


def _print_waiting(lines: Lines, gain: Gain, done: Iterable[Done], single: bool) -> None:
    """Figures tell nothing of what only the next boot puts in force."""
    measured = {each.host for each in gain.late}
    waiting = sorted({each.step.host for each in done if each.outcome == PENDING} & measured)
    if waiting:
        where = "" if single else f" on {nodeset.fold(waiting)}"
        lines.line(("note       ", "cyan"), f"not in these figures: what waits for the next boot{where}")


def _print_short(lines: Lines, gain: Gain, asked: str, single: bool) -> None:
    """What is slower than it should be, also where the changes have nothing to do with it."""
    for each in gain.short[:MOST_NAMES]:
        figure, expected = each.figure, each.expected
        least = "at least" if figure.sign > 0 else "at most"
        bound = f", expected {least} {number(expected.bound)} ({expected.provenance})" if expected else ""
        where = "" if single else f"{figure.host} "
        lines.line(("short      ", STYLES[WORSE]), f"{where}{title(figure)} {figure.subject}")
        lines.line(f"{amount(figure)}{bound}", indent=GUTTER)
    for found in gain.findings[:MOST_NAMES]:
        lines.line(("short      ", STYLES[WORSE]), "" if single else f"{found.host} ", found.title)
    count = len(gain.short) + len(gain.findings)
    if count:
        more = f"all {count}, with what is suspect" if count > MOST_NAMES else "with what is suspect"
        words = " ".join(part for part in ("nodetune verify", asked, f"--suite {gain.wanted.suite}") if part)
        lines.line(f"{more}: ", (words, "green"), indent=GUTTER)


def _counts(changes: Sequence[Change]) -> str:
    statuses = [each.status for each in changes]
    told = ", ".join(f"{statuses.count(each)} {each}" for each in (WORSE, BETTER, SAME, UNSURE) if each in statuses)
    judged = len(statuses) - statuses.count(UNSURE)
    return f"{told}; each at the {LEVEL:.0%} level" if judged else told


def document(gain: Gain | None) -> dict[str, Any] | None:
    """The part `verified` of an apply; null where nothing was to be measured. Fractions as in nodetune.compare/1."""
    if gain is None:
        return None
    return {
        "suite": gain.wanted.suite,
        "runs": gain.wanted.runs,
        "level": LEVEL,
        "changes": verify_data.compared(gain.changes)["changes"],
        "not_measured": [
            {"host": each.host, "when": each.when, "state": each.state, "message": each.message}
            for each in gain.missing
        ],
        "short": len(gain.short) + len(gain.findings),
    }
