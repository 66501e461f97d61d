"""The result of a tuning as one HTML page that opens from disk: a picture of every case and its runs. No script."""

from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from nodetune.foundation import text
from nodetune.report.html import plain
from nodetune.tune.document import chance
from nodetune.tune.headline import headline, percent, resolved
from nodetune.tune.space import in_words

ROW, HEAD, REACH = 44, 24, 47
"""Layout of the picture: pixels for each case and above the first; per cent for the longest bar from the middle."""

MIN_SPAN = 0.02
"""The smallest fraction that the picture shows on each side: smaller differences are noise."""


def write(stream: TextIO, found: Mapping[str, Any]) -> None:
    """Write the page of a tuning (nodetune/tune/document.py)."""
    plain.write(
        stream,
        "tuning.html",
        found=found,
        words=in_words,
        span=text.span,
        chance=chance,
        percent=percent,
        headline=headline(found),
        resolved=resolved(found),
        pictures=[picture(each["cases"]) for each in found["confirmations"]],
    )


def picture(cases: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the position of each case and its interval for any width: no gain in the middle, better to the right."""
    reach = max([MIN_SPAN, *(abs(end) for case in cases for end in (*case["interval"], case["gain"]))])

    def place(fraction: float) -> str:
        return f"{50 + fraction / reach * REACH:.1f}%"

    rows = [
        {
            "name": case["id"],
            "y": HEAD + ROW * number,
            "low": place(case["interval"][0]),
            "high": place(case["interval"][1]),
            "at": place(case["gain"]),
            "gain": percent(case["gain"]),
            "kind": "better" if case["interval"][0] > 0 else "worse" if case["interval"][1] < 0 else "same",
        }
        for number, case in enumerate(cases)
    ]
    return {"rows": rows, "height": HEAD + ROW * len(rows)}
