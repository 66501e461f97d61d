"""The catalogue of checks: a list for the terminal, one explanation, and the generated page of docs/."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.table import Table

from nodetune.api.model import Check, disruption_name
from nodetune.audit import explain
from nodetune.config import quantities
from nodetune.foundation import paths
from nodetune.foundation import text as plain_text
from nodetune.report.text.lines import STYLE, Lines, console

WIDE = 130
"""Widths from which the table has columns for the wanted value and for the fix."""


def print_checks(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print a table as wide as the screen, grouped by area; where nobody reads it, one line a check for other programs.

    Ids are never wrapped.
    """
    out = console(sys.stdout)
    if not out.is_terminal:
        widths = {key: max(len(row[key]) for row in rows) for key in ("id", "severity", "area")}
        for row in rows:
            sys.stdout.write(
                "  ".join([*(f"{row[key]:{width}}" for key, width in widths.items()), row["title"]]) + "\n"
            )
        return
    wide = out.width >= WIDE
    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    table.add_column("check", no_wrap=True)
    table.add_column("severity", no_wrap=True)
    for head in ("what is wrong", *(("wanted", "fix") if wide else ())):
        table.add_column(head, overflow="fold")
    for area, group in groupby(rows, key=lambda row: row["area"]):
        table.add_row(area, style="bold underline")
        for row in group:
            more = (row["wanted"], _fix_column(row)) if wide else ()
            table.add_row(f"  {row['id']}", row["severity"], row["title"], *more)
    out.print(table)
    more_there = "" if wide else ", with the wanted value and the fix"
    one = paths.as_typed(f"nodetune explain ID describes one{more_there}")
    out.print(f"\n{plain_text.count(len(rows), 'check')}; {one}")


def _fix_column(row: Mapping[str, Any]) -> str:
    return row["fix"] if row["disruption"] == "none" else f"{row['fix']} ({disruption_name(row['disruption'])})"


def print_check(check: Check, gates: bool, said: Iterable[tuple[str, str]] = ()) -> None:
    """Print everything about a check. `said`: further headings and texts (its figure, site files, hosts)."""
    out = Lines(console(sys.stdout))
    told = explain.explain(check)
    out.line(
        (check.id, "bold"),
        "  ",
        (check.severity, STYLE[check.severity]),
        f"  {check.area}, {check.stability}" + (", gates jobs" if gates else ""),
    )
    out.line(f"{told.title}.")
    out.line("")
    rows = [("Wanted", explain.wanted(check)), ("Fix", explain.fix(check)), *said, *told.sections.items()]
    if quantities.example(check.unit):
        rows.insert(
            1, ("In a site file", f"a number of {check.unit}, or a text such as {quantities.example(check.unit)}")
        )
    for head, text in rows:
        write = (
            out.whole if head in ("Confirm manually", "Measure it") else out.line
        )  # a command: nobody can paste two halves
        write((f"{head}: ", "bold"), (text, ""))
