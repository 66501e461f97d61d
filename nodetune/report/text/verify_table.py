"""The table of a verify: a line for each kind of figure, with subjects and sizes folded, and the format of numbers."""

import re
import statistics
from collections.abc import Collection, Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from nodetune.foundation import by_key, text
from nodetune.verify import catalogue, figures
from nodetune.verify.model import FAILED, PASS, PEERS, SHORT, SKIP, UNKNOWN, Figure, Verdict

BELOW = "below"
"""The word for people; documents have `short`."""

STYLE = {PASS: "green", SHORT: "bold red", UNKNOWN: "magenta", SKIP: "dim", FAILED: "bold red", "note": "cyan"}
BAR_CELLS = 8
EIGHTHS = " ▏▎▍▌▋▊▉█"
CURVE = "▁▂▃▄▅▆▇█"
WORST_FIRST = (SHORT, UNKNOWN, PASS)
WIDE = 110
"""Widths from which the table shows the spread and the bars."""


def print_table(out: Console, verdicts: Sequence[Verdict]) -> None:
    """Print a line for each kind of figure: count, median, expected, share of the hardware's limit."""
    wide = out.width >= WIDE
    printed = table()
    for name in ("", "measurement", "of", "median", *(("from-to",) if wide else ()), "expected", "of limit"):
        # what a measurement is called may take two lines; a verdict or a figure that is cut off says nothing
        printed.add_column(name, no_wrap=name != "measurement", justify="right" if name == "median" else "left")
    for rows in grouped(verdicts):
        printed.add_row(*_cells(rows, wide))
    if verdicts:
        out.print(printed)


def table() -> Table:
    """Make a table without lines, whose columns are two blanks apart."""
    return Table(box=None, pad_edge=False, show_edge=False, header_style="bold", padding=(0, 2, 0, 0))


def grouped(verdicts: Iterable[Verdict]) -> list[list[Verdict]]:
    """Group verdicts that share a line: same measurement, metric and conditions, and all sizes of a collective."""
    return list(by_key((kind(each.figure), each) for each in verdicts).values())


def kind(figure: Figure) -> tuple[str, ...]:
    """Return the key of figures that share a line."""
    conditions = {key: value for key, value in figures.conditions(figure).items() if key not in ("size", "numa_node")}
    of = family(figure.subject)
    if of.startswith("node") and len(set(figure.subject.split("→"))) == 1:
        of = "node"
    return figure.measurement, figure.metric, of, figure.unit, repr(sorted(conditions.items()))


def family(subject: str) -> str:
    """Return the kind of a subject: `GPU→GPU` for `GPU0→GPU1`."""
    return re.sub(r"\d+", "", subject) if subject.startswith(("GPU", "cpu", "node")) else subject


def _cells(rows: Sequence[Verdict], wide: bool) -> list[str | Text]:
    """Return one line of the table. A collective over sizes shows its largest, and all as a curve."""
    shown, curve = _of_largest(rows)
    unit = shown[0].figure.unit
    values = [each.figure.value for each in shown]
    worst = min(rows, key=lambda each: WORST_FIRST.index(each.status))
    cells: list[str | Text] = [
        Text(_status(rows, worst), STYLE[worst.status]),
        figures.title(shown[0].figure) + curve,
        subjects([each.figure.subject for each in shown]),
        f"{number(statistics.median(values))} {unit}",
    ]
    spread = values if len(values) > 1 else shown[0].figure.samples
    between = [f"{number(min(spread))}-{number(max(spread))}" if len(spread) > 1 else ""]
    return [
        *cells,
        *(between if wide else []),
        _expected(worst if worst.status == SHORT else shown[0], wide),
        _of_limit(shown, wide),
    ]


def _of_largest(rows: Sequence[Verdict]) -> tuple[Sequence[Verdict], str]:
    """Return (the verdicts of the largest size, the curve over all sizes) of a collective."""
    sizes = [figures.size(each.figure) for each in rows]
    if catalogue.of(rows[0].figure.measurement).scope != "collective" or len(set(sizes)) < 2:
        return rows, ""
    ordered = sorted(rows, key=lambda each: figures.size(each.figure))
    return [each for each, size in zip(rows, sizes, strict=True) if size == max(sizes)], f" {_curve(ordered)}"


def _status(rows: Sequence[Verdict], worst: Verdict) -> str:
    count = sum(each.status == worst.status for each in rows)
    word = BELOW if worst.status == SHORT else worst.status
    return f"{count} {word}" if count < len(rows) else word


def subjects(names: Collection[str]) -> str:
    """Return the only subject, or the number of subjects and their kind."""
    first = next(iter(names))
    if len(names) == 1:
        return text.plain(first, 24)
    words = {
        "GPU": "GPUs",
        "cpu": "CPUs",
        "node": "nodes",
        "GPU→GPU": "pairs",
        "GPU↔GPU": "pairs",
        "node→node": "pairs",
    }
    return f"{len(names)} {words.get(family(first), 'subjects')}"


def _expected(verdict: Verdict, wide: bool) -> str:
    expected = verdict.expected
    if expected is None:
        return "-"
    bound = f"{'≥' if verdict.figure.sign > 0 else '≤'} {number(expected.bound)}"
    if verdict.status == UNKNOWN:
        bound = f"({bound})"
    return f"{bound} {'peers' if expected.kind == PEERS else expected.kind}" if wide else bound


def _of_limit(rows: Sequence[Verdict], wide: bool) -> str:
    fractions = [each.fraction for each in rows if each.fraction is not None]
    if not fractions:
        return ""
    share = statistics.median(fractions)
    return f"{_bar(share)} {share:.0%}" if wide else f"{share:.0%}"


def _bar(share: float) -> str:
    eighths = round(min(1.0, max(0.0, share)) * BAR_CELLS * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (EIGHTHS[rest] if rest else "")).ljust(BAR_CELLS, "·")


def _curve(ordered: Sequence[Verdict]) -> str:
    values = [each.figure.value for each in ordered]
    most = max(values) or 1.0
    return "".join(CURVE[min(7, max(0, int(value / most * 8)))] for value in values)


def amount(figure: Figure) -> str:
    return f"{number(figure.value)} {figure.unit}"


def number(value: float) -> str:
    """Format a number with at most four digits before the point and three significant digits after it."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.1f}" if abs(value) >= 100 else f"{value:.3g}"


def numbers(values: Iterable[float]) -> str:
    return ", ".join(number(value) for value in values)
