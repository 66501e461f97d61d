"""Rows of text as lines (a tab after each cell, for grep, awk and cut) or CSV (for spreadsheets)."""

import csv
from collections.abc import Iterable, Sequence
from typing import TextIO

from nodetune.foundation import text

FORMATS = ("lines", "csv")


def write(stream: TextIO, output_format: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write rows; only CSV has column names. No cell contains a tab, a line break or a formula."""
    safe = (list(map(text.cell, row)) for row in rows)
    if output_format == "lines":
        stream.writelines("\t".join(row) + "\n" for row in safe)
        return
    out = csv.writer(stream, lineterminator="\n")
    out.writerow(head)
    out.writerows(safe)
