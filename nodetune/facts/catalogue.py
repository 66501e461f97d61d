"""The register of facts: catalogue.txt has their shapes, kinds and units, and its head says what each column means. Pure."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from nodetune.facts.shapes import (
    MAX_MEMBERS,
    File,
    Flag,
    ListOf,
    MapOf,
    Missing,
    Number,
    OneOf,
    Record,
    Shape,
    Text,
    Word,
)
from nodetune.facts.shapes import (
    Row as ListRow,
)

PATH = Path(__file__).with_name("catalogue.txt")
NAME, KIND, RESET, UNIT, SUPPORT, SINCE, SAMPLE, SHAPE = range(8)
IN_A_BUNDLE = ("yes", "ask")
MAX_GPUS = 256
WORDS: dict[str, Shape] = {
    "text": Text(),
    "word": Word(),
    "file": File(),
    "flag": Flag(),
    "int": Number(),
    "count": Number(least=0),
    "size": Number(least=0, most=1 << 63),
    "wide": Number(least=0, most=1 << 128),
    "number": Number(fraction=True),
    "cpus": Number(least=0, most=1 << 16),
    "gpus": Number(least=0, most=MAX_GPUS),
}
_TOKEN = re.compile(r"[\w-]+|\S")


class Row:
    """A fact, whose path is empty, or leaves below it. Cells are read when they are asked for: an audit needs few."""

    __slots__ = ("_cells", "needed", "path")

    def __init__(self, line: str) -> None:
        self._cells = line.split("|", SHAPE)
        path = "" if line[0] != " " else self._cells[NAME].strip()
        self.path, self.needed = path.rstrip("!"), path[-1:] == "!"

    def cell(self, column: int) -> str:
        """Return a cell. A row may end early."""
        return self._cells[column].strip() if column < len(self._cells) else ""

    @property
    def kind(self) -> str:
        """Return what the history does with these leaves."""
        return self.cell(KIND).partition(" <")[0]

    @property
    def limit(self) -> int | None:
        """Return what a judged figure must not reach."""
        limit = self.cell(KIND).partition(" <")[2]
        return int(limit) if limit else None

    @property
    def shape(self) -> str:
        """Return the notation of the shape."""
        return self.cell(SHAPE)


@cache
def _texts() -> dict[str, str]:
    """Return the lines of each fact, and of each named shape, as one text."""
    _head, *texts = re.split(r"\n(?=\w)", PATH.read_text("utf-8"))
    return {text.partition(" ")[0]: text for text in texts}


def names() -> list[str]:
    """Return the names of all facts and families."""
    return [name for name in _texts() if "." in name]


def is_in(name: str) -> bool:
    """Return whether a fact has a row of its own."""
    return name in _texts()


def named_shape(name: str) -> str:
    """Return the notation of a named shape. Raise KeyError if there is none."""
    return _texts()[name].splitlines()[0].partition(" = ")[2]


def listed(name: str) -> str:
    """Return the name under which a fact is in the catalogue, its own or that of its family; empty if it is not."""
    if name in _texts():
        return name
    return next((f"{each}*" for each in _families() if name.startswith(each)), "")


@cache
def _families() -> tuple[str, ...]:
    """Return the prefixes of families, the longest first."""
    return tuple(sorted((name[:-1] for name in _texts() if name.endswith(".*")), key=len, reverse=True))


@cache
def rows(name: str) -> tuple[Row, ...]:
    """Return what is known of a fact or family that is listed so: its own row, then those of its leaves."""
    return tuple([Row(line) for line in _texts()[name].splitlines() if line and line[0] != "#"])


def members(every: tuple[Row, ...], path: str) -> Iterator[tuple[str, Row]]:
    """Yield (name, row) of the objects at this path: `*/state` is one of `""`, and so is `state`."""
    for row in every[1:]:
        if row.shape and (not path or row.path.startswith(f"{path}/")):
            name = row.path[len(path) :].lstrip("*/")
            if "/" not in name:
                yield name, row


def in_a_bundle(name: str) -> bool:
    """Return whether a vendor's support gets a fact."""
    known = listed(name)
    return bool(known) and rows(known)[0].cell(SUPPORT) in IN_A_BUNDLE


def asked_for() -> set[str]:
    """Return the facts that are read only because a vendor's support asks for them."""
    return {name for name in names() if rows(name)[0].cell(SUPPORT) == "ask"}


class Wanted(NamedTuple):
    """The shape of a fact: one value, or one for each subject."""

    shape: Shape
    each: bool = False


def shape_of(name: str) -> Wanted | None:
    """Return the shape of a fact; None for a name that is not in the catalogue."""
    known = listed(name)
    return wanted_of(known) if known else None


@cache
def wanted_of(name: str) -> Wanted:
    """Return the shape of a fact or family that is listed so."""
    every = rows(name)
    notation = every[0].shape
    return Wanted(_shape(notation.removeprefix("each "), every), notation.startswith("each "))


def _shape(notation: str, every: tuple[Row, ...], path: str = "") -> Shape:
    """Return the shape at this path of the rows. Most are plain, such as `text`."""
    return Notation(notation, every, path).read() if "members" in notation else _plain(notation)


@cache
def _plain(notation: str) -> Shape:
    return Notation(notation).read()


class Notation:
    """Reads the notation of a shape, as the head of catalogue.txt explains it. `rows`: those of its fact; `path`: its own."""

    def __init__(self, text: str, rows: tuple[Row, ...] = (), path: str = "") -> None:
        self.left, self._rows, self._path = _TOKEN.findall(text), rows, path

    def read(self) -> Shape:
        """Return the whole shape. Raise ValueError if anything follows it."""
        shape = self._shape()
        if self.left:
            raise ValueError(f"not a valid shape: {' '.join(self.left)}")
        return shape

    def _shape(self) -> Shape:
        shapes = [self._one()]
        while self._next("|"):
            shapes.append(self._one())
        if self._next("?"):
            shapes.append(Missing())
        return shapes[0] if len(shapes) == 1 else OneOf(*shapes)

    def _one(self) -> Shape:
        sign = self.left.pop(0)
        if sign == "[":
            return self._list()
        if sign == "(":
            return ListRow(*self._until(")", self._shape))
        if sign == "{":
            return self._map() if self._next("*") else self._record()
        if sign == "members":
            return self._members()
        return WORDS[sign] if sign in WORDS else _plain(named_shape(sign))

    def _members(self) -> Record:
        found = list(members(self._rows, self._path))
        shapes = {name: _shape(row.shape, self._rows, row.path) for name, row in found}
        return Record(shapes, [name for name, row in found if row.needed])

    def _list(self) -> ListOf:
        of = self._shape()
        bounded = self._next("max")
        most = int(self.left.pop(0)) if self.left[0].isdigit() else MAX_MEMBERS
        self._skip("]")
        return ListOf(of, most, 0 if bounded or most == MAX_MEMBERS else most)

    def _map(self) -> MapOf:
        self._skip(":")
        of = self._shape()
        self._skip("}")
        return MapOf(of)

    def _record(self) -> Record:
        entries = self._until("}", self._entry)
        return Record({name: shape for name, shape, _ in entries}, [name for name, _, needed in entries if needed])

    def _entry(self) -> tuple[str, Shape, bool]:
        name, needed = self.left.pop(0), self._next("!")
        self._skip(":")
        return name, self._shape(), needed

    def _until(self, end: str, read: Any) -> list[Any]:
        found = [read()]
        while self._next(","):
            found.append(read())
        self._skip(end)
        return found

    def _next(self, sign: str) -> bool:
        """Take the sign if it is the next one."""
        if self.left[:1] != [sign]:
            return False
        self.left.pop(0)
        return True

    def _skip(self, sign: str) -> None:
        if not self._next(sign):
            raise ValueError(f"expected {sign} before {' '.join(self.left)!r}")
