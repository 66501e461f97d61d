"""A comparison of two verify results for people: changes first, then the smallest visible change."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TextIO

from rich.console import Console
from rich.text import Text

from nodetune.foundation import by_key, nodeset, text
from nodetune.report.text.host_names import named
from nodetune.report.text.lines import Lines, console
from nodetune.report.text.verify_table import WIDE, amount, family, number, subjects, table
from nodetune.verify import figures
from nodetune.verify.compare import BETTER, LEVEL, SAME, UNSURE, WORSE, FigureChange
from nodetune.verify.model import Figure
from nodetune.verify.scaling import Scaling

STYLES = {WORSE: "bold red", BETTER: "green", UNSURE: "magenta", SAME: ""}
NAMES = ("", "measurement", "of", "hosts", "before", "after", "change", "from-to", "seen from")
RIGHT = ("before", "after", "change", "seen from")
FOLDED = {"measurement": 12, "of": 6, "hosts": 8}
"""Columns that may wrap, with their minimum width."""

MAX_LINES = 8
"""Names of missing figures in one line."""


def print_changes(
    stream: TextIO,
    changes: Sequence[FigureChange],
    missing: Iterable[Figure] = (),
    lost: Mapping[str, tuple[str, str]] | None = None,
    scaled: Sequence[Scaling] = (),
) -> None:
    """Print worse figures first, then better, then unchanged ones with the smallest visible change.

    `missing` are the figures that only the first result has, `lost` the hosts that were not measured, with both states,
    `scaled` those of more GPUs.
    """
    out = console(stream)
    if changes:
        print_table(out, changes, len({each.before.host for each in changes}) == 1)
    lines = Lines(out)
    for one in scaled:
        sides = f"{text.plain(one.before.subject, 40)} → {text.plain(one.after.subject, 40)}"
        values = f"{number(one.before.value)} → {amount(one.after)} ({one.efficiency:.0%})"
        lines.line(("scaling  ", "bold"), f"{figures.title(one.before)}  {sides}  {values}")
    if changes or not scaled:
        _changes_summary(lines, changes)
    for (was, now), hosts in by_key((states, host) for host, states in (lost or {}).items()).items():
        lines.line(("not measured both times: ", "bold magenta"), f"{named(hosts)} ({was} → {now})")
    _missing(lines, missing)


def print_table(out: Console, changes: Sequence[FigureChange], single: bool) -> None:
    """Print worse figures singly, and others folded by what was measured. `single`: they are of one host."""
    rows = [_cells(same) for same in folded(changes)]
    shown = [name for name in NAMES if _has_room(name, single, out.width >= WIDE) and any(row[name] for row in rows)]
    printed = table()
    for name in shown:
        justify: Literal["left", "right"] = "right" if name in RIGHT else "left"
        printed.add_column(
            name, no_wrap=name not in FOLDED, overflow="fold", justify=justify, min_width=FOLDED.get(name)
        )
    for row in rows:
        printed.add_row(*(row[name] for name in shown))
    out.print(printed)


def _has_room(name: str, single: bool, wide: bool) -> bool:
    """Return whether a column fits: a narrow terminal drops explanations but never figures."""
    return {"hosts": not single, "from-to": wide, "seen from": wide or single}.get(name, True)


def folded(changes: Iterable[FigureChange]) -> list[list[FigureChange]]:
    """Fold changes into lines, in the order of STYLES: one line for each worse one, others by what was measured."""
    found: dict[tuple[str, ...], list[FigureChange]] = {}
    for each in changes:
        figure = each.before
        own = (figure.host, figure.subject) if each.status == WORSE else ()
        found.setdefault((each.status, figures.title(figure), family(figure.subject), figure.unit, *own), []).append(
            each
        )
    return sorted(found.values(), key=lambda rows: list(STYLES).index(rows[0].status))


def _cells(rows: Sequence[FigureChange]) -> dict[str, str | Text]:
    """Return column → text of one line. For several figures, it shows medians and their changes."""
    first, changes = rows[0], [each.change for each in rows]
    before, after = (
        statistics.median(values)
        for values in zip(*((each.before.value, each.after.value) for each in rows), strict=True)
    )
    seen = [each.smallest for each in rows if each.smallest is not None]
    return {
        "": Text(first.status, STYLES[first.status]),
        "measurement": figures.title(first.before),
        "of": subjects(dict.fromkeys(each.before.subject for each in rows)),
        "hosts": text.plain(nodeset.fold(sorted({each.before.host for each in rows})), 40),
        "before": number(before),
        "after": f"{number(after)} {first.after.unit}",
        "change": f"{after / before - 1:+.1%}" if before else "",
        "from-to": f"{min(changes):+.1%} to {max(changes):+.1%}" if len(rows) > 1 else "",
        "seen from": f"{max(seen):.1%}" if seen else "",
    }


def _changes_summary(lines: Lines, changes: Sequence[FigureChange]) -> None:
    statuses = [each.status for each in changes]
    lines.line("")
    lines.line((counts(changes) or "the files have no figures in common", "bold"))
    if set(statuses) != {UNSURE}:
        told = f"each at the {LEVEL:.0%} level: of {text.count(len(changes), 'figure')} without change about {len(changes) * LEVEL:.1g} would show one"
        lines.line(told if changes else "compare results of the same hosts and measurements")
    if UNSURE in statuses:
        lines.line("too few runs to distinguish a change from noise: measure both sides with --repeat 5 or more")
    if lost_runs(changes):
        lines.line(lost_runs(changes))


def _missing(lines: Lines, missing: Iterable[Figure]) -> None:
    """Print what was not measured again, hosts that lack the same in one line."""
    lacks = by_key((each.host, f"{figures.title(each)} {text.plain(each.subject, 40)}".strip()) for each in missing)
    for names, hosts in by_key((tuple(names), host) for host, names in lacks.items()).items():
        more = f" and {text.count(len(names) - MAX_LINES, 'other')}" if len(names) > MAX_LINES else ""
        lines.line(("not measured after: ", "bold magenta"), f"{named(hosts)}: {text.names(names[:MAX_LINES])}{more}")


def counts(changes: Sequence[FigureChange]) -> str:
    """Return how many figures changed how."""
    statuses = [each.status for each in changes]
    return ", ".join(f"{statuses.count(each)} {each}" for each in (WORSE, BETTER, SAME, UNSURE) if each in statuses)


def lost_runs(changes: Sequence[FigureChange]) -> str:
    """Return the number of runs that do not count and what to do; empty if all count."""
    lost = [each for each in changes if each.lost]
    if not lost:
        return ""
    runs = text.count(max(each.lost for each in lost), "run")
    told = f"other processes used the hosts: up to {runs} of {text.count(len(lost), 'figure')} do not count"
    return f"{told}; measure again when the hosts are idle"
