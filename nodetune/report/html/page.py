"""An audit as one HTML page that opens from disk: it loads nothing, sends nothing and uses no framework."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from nodetune.api.model import Check, HostResult
from nodetune.foundation import text as plain_text
from nodetune.report.html.data import compact
from nodetune.report.html.plain import source
from nodetune.report.html.previous import PreviousAudit
from nodetune.report.sections import CommandOptions

if TYPE_CHECKING:
    from nodetune.report.html.measured import FigureData

PAGE = Path(__file__).parent / "assets"
SCRIPTS = ("model", "show", "map", "plot", "measured", "figures", "roof", "check", "host", "views", "main")
"""The scripts in the order of concatenation."""


def write(
    results: Iterable[HostResult],
    stream: TextIO,
    checks: Mapping[str, Check],
    commands: CommandOptions,
    before: PreviousAudit | None = None,
    measured: FigureData | None = None,
    judged: str = "",
) -> None:
    """Collect results one by one, then write the page. `judged`: see report.About."""
    kept = compact(results, checks, before)
    known = kept.document(commands, judged=plain_text.plain(judged))
    data = {**known, "measured": measured.document() if measured else None}
    style = (PAGE / "page.css").read_text("utf-8")
    script = "".join((PAGE / f"{name}.js").read_text("utf-8") for name in SCRIPTS)
    parts = {
        "policy": policy(script, style),
        "title": html.escape(f"nodetune audit: {kept.title()}"),
        "style": style,
        "script": script,
        "data": embedded(data),
    }
    frame = (PAGE / "page.html").read_text("utf-8")
    for piece in frame.split("{{"):  # not one big text: the data may be megabytes
        name, closed, rest = piece.partition("}}")
        stream.write(parts[name] + rest if closed else piece)


def policy(script: str, style: str) -> str:
    """Return the Content-Security-Policy: this script and this style, and nothing else."""
    return (
        f"default-src 'none'; script-src '{source(script)}'; style-src '{source(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def embedded(data: Any) -> str:
    """Return JSON that cannot end its script element or begin a comment in it."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
