"""A comparison of two verify results for people: changes first, then the smallest visible change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TextIO

from rich.table import Table
from rich.text import Text

from nodetune.foundation import by_key, text
from nodetune.report.text.host_names import named
from nodetune.report.text.lines import Lines, console
from nodetune.report.text.verify_table import amount, number
from nodetune.verify import figures
from nodetune.verify.compare import BETTER, LEVEL, SAME, UNSURE, WORSE, FigureChange
from nodetune.verify.model import Figure
from nodetune.verify.scaling import Scaling

STYLES = {WORSE: "bold red", BETTER: "green", UNSURE: "magenta", SAME: ""}
NAMES = ("", "measurement", "of", "before", "after", "change", "seen from")
MAX_LINES = 8
"""Names of missing figures in one line."""

FOLDED = ("measurement", "of")
JUSTIFY: dict[str, Literal["right"]] = {"before": "right", "after": "right", "change": "right", "seen from": "right"}


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
    single = len({each.before.host for each in changes}) == 1
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in NAMES:
        table.add_column(name, no_wrap=name not in FOLDED, overflow="fold", justify=JUSTIFY.get(name, "left"))
    for each in sorted(changes, key=lambda one: list(STYLES).index(one.status)):
        table.add_row(*_cells(each, single))
    if changes:
        out.print(table)
    lines = Lines(out)
    for one in scaled:
        counts = f"{text.plain(one.before.subject, 40)} → {text.plain(one.after.subject, 40)}"
        values = f"{number(one.before.value)} → {amount(one.after)} ({one.efficiency:.0%})"
        lines.line(("scaling  ", "bold"), f"{figures.title(one.before)}  {counts}  {values}")
    if changes or not scaled:
        _changes_summary(lines, changes)
    for (was, now), hosts in by_key((states, host) for host, states in (lost or {}).items()).items():
        lines.line(("not measured both times: ", "bold magenta"), f"{named(hosts)} ({was} → {now})")
    _missing(lines, missing)


def _cells(change: FigureChange, single: bool) -> list[str | Text]:
    """Return one line: medians and their change. The status says if it is significant; the JSON has the interval."""
    subject = change.before.subject if single else f"{change.before.host} {change.before.subject}"
    return [
        Text(change.status, STYLES[change.status]),
        figures.title(change.before),
        text.plain(subject, 40),
        number(change.before.value),
        amount(change.after),
        f"{change.change:+.1%}",
        f"{change.smallest:.1%}" if change.smallest is not None else "",
    ]


def _changes_summary(lines: Lines, changes: Sequence[FigureChange]) -> None:
    statuses = [each.status for each in changes]
    counts = [f"{statuses.count(each)} {each}" for each in (WORSE, BETTER, SAME, UNSURE) if statuses.count(each)]
    lines.line("")
    lines.line((", ".join(counts) or "the files have no figures in common", "bold"))
    if len(counts) > statuses.count(UNSURE) > 0 or UNSURE not in statuses:
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


def lost_runs(changes: Sequence[FigureChange]) -> str:
    """Return the number of runs that do not count and what to do; empty if all count."""
    lost = [each for each in changes if each.lost]
    if not lost:
        return ""
    runs = text.count(max(each.lost for each in lost), "run")
    told = f"other processes used the hosts: up to {runs} of {text.count(len(lost), 'figure')} do not count"
    return f"{told}; measure again when the hosts are idle"
