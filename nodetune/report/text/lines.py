"""Lines of styled parts on a console, wrapped so that names stay whole."""

import os
import re
from collections.abc import Iterator, Sequence
from typing import TextIO

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.text import Text

from nodetune.foundation import paths

Part = tuple[str, str] | str
"""A text, or a text with its style."""

NARROWEST, PIPE, WIDEST = 80, 120, 160
"""Widths of a report in columns. PIPE is the width where the output is not a terminal."""

STYLE = {"critical": "bold white on red", "high": "bold red", "medium": "yellow", "low": "cyan", "info": "dim"}
_WORD = re.compile(r"\s*(?:`[^`]{1,300}`\S*|(?:\d+ )?\S+)\s*")
"""A word. A number stays with its noun, and a command in backquotes is one word so that it can be copied."""

_PIECE = re.compile(r"[^,]*,+|[^,]+")
_COPIED = re.compile(r'(?:https?:/)?/[\w./@*+?=&%#:-]{1,200}[,;:]?|`[^`]+`\S{0,3}|[\w.]+="[^"\s]+"')
"""A path, an address or a command: it stays whole even if longer than a line, so that it can be copied."""


class Lines:
    """Writes lines of styled parts, each wrapped under its own indent."""

    def __init__(self, console: Console) -> None:
        self._console, self._last = console, "not empty"

    def room(self, indent: str = "") -> int:
        """Return how wide a line may be under an indent."""
        return max(40, self._console.width - len(indent) - 1)

    def fits(self, *parts: Part, indent: str = "") -> bool:
        """Return whether these parts fit on one line."""
        return sum(cell_len(each if isinstance(each, str) else each[0]) for each in parts) <= self.room(indent)

    def line(self, *parts: Part, indent: str = "", hang: str = "") -> None:
        """Print one logical line. A part is a text, or a text with its style. Rows after the first also get `hang`."""
        line = Text()
        for part in parts:
            text, style = (part, "") if isinstance(part, str) else part
            line.append(paths.as_typed(text), STYLE.get(style, style))
        line.expand_tabs(8)
        margin = indent
        for row in line.split("\n", allow_blank=True):
            for wrapped in row.divide(breaks(row.plain, self.room(margin), self.room(indent + hang))):
                wrapped.rstrip()
                self._print(Text(margin).append_text(wrapped))
                margin = indent + hang

    def joined(self, left: Sequence[Part], right: str) -> None:
        """Print two texts at both ends of one line, or one below the other."""
        used = sum(cell_len(each if isinstance(each, str) else each[0]) for each in left) + cell_len(right)
        if used + 4 <= self.room():
            self.line(*left, " " * (self.room() - used), (right, "dim"))
            return
        self.line(*left)
        if right:
            self.line((right, "dim"))

    def gap(self) -> None:
        """Print an empty line unless the last line is empty."""
        if self._last.strip():
            self.line("")

    def commands(self, *proposed: tuple[str, str]) -> None:
        """Print commands, each after its label: on one line if they fit, else one line each. None is wrapped."""
        proposed = tuple((label, paths.as_typed(command)) for label, command in proposed)
        between = "   "
        if self.fits(between.join(f"{label} {command}" for label, command in proposed)):
            parts = [
                part for label, command in proposed for part in ((f"{between}{label} ", "dim"), (command, "green"))
            ]
            self.whole((parts[0][0].lstrip(), "dim"), *parts[1:])
            return
        for label, command in proposed:
            self.whole((f"{label} ", "dim"), (command, "green"))

    def whole(self, *parts: Part, indent: str = "") -> None:
        """Print one line without wrapping."""
        line = Text(indent)
        for part in parts:
            text, style = (part, "") if isinstance(part, str) else part
            line.append(paths.as_typed(text), STYLE.get(style, style))
        self._print(line)

    def _print(self, line: Text) -> None:
        self._last = line.plain
        self._console.print(line, soft_wrap=True)


def breaks(text: str, first: int, width: int) -> Iterator[int]:
    """Yield where a text wraps: before words; long words after commas, else where the line is full.

    `first` is the width of the first line.
    """
    used, at, room = 0, 0, first
    for piece in _pieces(text, width):
        if used and used + cell_len(piece.rstrip()) > room:
            yield at
            used, room = 0, width
        used += cell_len(piece)
        at += len(piece)


def _pieces(text: str, width: int) -> Iterator[str]:
    """Yield the parts of a text that stay together. Each fits on a line, except for what must be copied whole."""
    for word in _WORD.findall(text):
        if cell_len(word.rstrip()) <= width or _COPIED.fullmatch(word.strip()):
            yield word
            continue
        for piece in _PIECE.findall(word):
            yield from (piece,) if cell_len(piece.rstrip()) <= width else chop_cells(piece, width)


def console(stream: TextIO) -> Console:
    """Make a console with colour only on terminals, respecting NO_COLOR. Text is never interpreted as markup."""
    return Console(file=stream, highlight=False, markup=False, emoji=False)


def screen(stream: TextIO) -> Console:
    """Make a console as wide as the terminal, within limits."""
    made = console(stream)
    width = made.width if made.is_terminal or os.environ.get("COLUMNS") else PIPE
    made.width = min(max(width, NARROWEST), WIDEST)
    return made


def some(names: Sequence[str], most: int = 8) -> str:
    """Return the first names as one text, with the number of the others."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
