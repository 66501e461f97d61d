"""An audit as one HTML page that opens from disk: nothing is loaded, nothing is sent, no framework."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from nodetune import show
from nodetune.model import Check, HostResult
from nodetune.report.html_data import Compact, compact
from nodetune.report.html_since import Before

if TYPE_CHECKING:
    from nodetune.report.html_measured import Measured

PAGE = Path(__file__).parent / "page"
SCRIPTS = ("model.js", "show.js", "map.js", "plot.js", "measured.js", "views.js", "main.js")
"""In the order in which they are joined."""


def write(
    results: Iterable[HostResult],
    stream: TextIO,
    checks: Mapping[str, Check],
    asked: str = "",
    before: Before | None = None,
    measured: Measured | None = None,
) -> None:
    """Results are taken one by one and let go; the page is written at the end."""
    write_page(compact(results, checks, before), stream, asked, measured)


def write_page(kept: Compact, stream: TextIO, asked: str = "", measured: Measured | None = None) -> None:
    """The page of what was kept, and of what was measured besides."""
    data = {**kept.document(show.plain(asked)), "measured": measured.document() if measured else None}
    style = (PAGE / "page.css").read_text("utf-8")
    script = "".join((PAGE / name).read_text("utf-8") for name in SCRIPTS)
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
    """The Content-Security-Policy: this script and this style, and nothing from anywhere."""
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def embedded(data: Any) -> str:
    """JSON that cannot end the script element that holds it, nor begin a comment in it."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
