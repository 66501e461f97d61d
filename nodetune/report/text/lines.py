"""Lines of styled parts on a console, wrapped so that names stay whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TextIO

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.text import Text

from nodetune.api.model import NOT_COLLECTED

STYLE = {"critical": "bold white on red", "high": "bold red", "medium": "yellow", "low": "cyan", "info": "dim"}
_WORD = re.compile(r"\s*(?:`[^`]{1,300}`\S*|(?:\d+ )?\S+)\s*")
"""A word; a number stays with what it counts, and a command in back quotes, which is there to be copied, is one word."""

_PIECE = re.compile(r"[^,]*,+|[^,]+")
_COPIED = re.compile(r"(?:https?:/)?/[\w./@*+?=&%#:-]{1,200}[,;:]?|`[^`]+`\S{0,3}")
"""A path, an address or a command, which nobody can copy from two lines: it stays whole where it is longer than a line."""


class Lines:
    """Writes lines of styled parts, each wrapped under its own indent."""

    def __init__(self, console: Console) -> None:
        self._console, self._last = console, "not empty"

    def room(self, indent: str = "") -> int:
        """Return how wide a line may be under an indent."""
        return max(40, self._console.width - len(indent) - 1)

    def fits(self, *parts: tuple[str, str] | str, indent: str = "") -> bool:
        """Return whether these parts need no second line."""
        return sum(cell_len(each if isinstance(each, str) else each[0]) for each in parts) <= self.room(indent)

    def line(self, *parts: tuple[str, str] | str, indent: str = "", hang: str = "") -> None:
        """Print one logical line. A part is a text, or a text with its style. Rows after the first get `hang` too."""
        line = Text()
        for part in parts:
            text, style = (part, "") if isinstance(part, str) else part
            line.append(text, style)
        line.expand_tabs(8)
        margin = indent
        for row in line.split("\n", allow_blank=True):
            for wrapped in row.divide(_breaks(row.plain, self.room(margin), self.room(indent + hang))):
                wrapped.rstrip()
                self._print(Text(margin).append_text(wrapped))
                margin = indent + hang

    def gap(self) -> None:
        """Print an empty line, unless there is one already."""
        if self._last.strip():
            self.line("")

    def commands(self, *proposed: tuple[str, str]) -> None:
        """Print commands, each after its label: on one line if they fit, else a line each; none is ever broken."""
        between = "   "
        if self.fits(between.join(f"{label} {command}" for label, command in proposed)):
            parts = [
                part for label, command in proposed for part in ((f"{between}{label} ", "dim"), (command, "green"))
            ]
            self.whole((parts[0][0].lstrip(), "dim"), *parts[1:])
            return
        for label, command in proposed:
            self.whole((f"{label} ", "dim"), (command, "green"))

    def whole(self, *parts: tuple[str, str], indent: str = "") -> None:
        """Print one line that is never broken."""
        line = Text(indent)
        for text, style in parts:
            line.append(text, style)
        self._print(line)

    def _print(self, line: Text) -> None:
        self._last = line.plain
        self._console.print(line, soft_wrap=True)


def _breaks(text: str, first: int, width: int) -> Iterator[int]:
    """Yield where a text breaks: before words; words longer than a line after commas, else where it is full.

    `first` is the room of the first line.
    """
    used, at, room = 0, 0, first
    for piece in _pieces(text, width):
        if used and used + cell_len(piece.rstrip()) > room:
            yield at
            used, room = 0, width
        used += cell_len(piece)
        at += len(piece)


def _pieces(text: str, width: int) -> Iterator[str]:
    """Yield the parts of a text that stay together; each but what is there to be copied fits into a line."""
    for word in _WORD.findall(text):
        if cell_len(word.rstrip()) <= width or _COPIED.fullmatch(word.strip()):
            yield word
            continue
        for piece in _PIECE.findall(word):
            yield from (piece,) if cell_len(piece.rstrip()) <= width else chop_cells(piece, width)


def console(stream: TextIO) -> Console:
    """Make a console with colour only on terminals, respecting NO_COLOR. No text is ever taken for markup."""
    return Console(file=stream, highlight=False, markup=False, emoji=False)


TIME_OVER = "not collected: the probe's time was over"
"""What the probe says of every fact that it did not come to (nodetune/probe/main.py)."""


def short_reason(reason: str) -> str:
    """Return a reason without the fact or file at its start, so that equal causes fold."""
    for cause in ("permission denied: needs root (--become)", NOT_COLLECTED, TIME_OVER):
        if cause in reason:
            return cause
    return reason


def some(names: list[str], most: int = 8) -> str:
    """Return the first names as one text, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
