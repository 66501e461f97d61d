"""The gate: every fact of a host passes through it once, and a value of the wrong shape becomes `Unread`. Pure.

shapes.txt has the shape of each fact. A fact without a shape, which a newer probe may send, passes within bounds.
"""

from __future__ import annotations

import re
from collections.abc import Container
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from nodetune.api.model import Absent, Each, Fact, Unread, Value
from nodetune.facts.shapes import (
    ANYTHING,
    MAX_MEMBERS,
    File,
    Flag,
    ListOf,
    MapOf,
    Missing,
    Number,
    OneOf,
    Record,
    Row,
    Shape,
    Text,
    Word,
)
from nodetune.foundation import text as plain_text

MAX_GPUS = 256
NO_VALUE = ("n/a", "not supported", "not available")
OF_PAIRS = "gpu.p2p"
TABLE = Path(__file__).with_name("shapes.txt")
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

Single = Value | Absent | Unread
Asked = Container[str] | None


class Wanted(NamedTuple):
    """The shape of a fact: one value, or one for each subject."""

    shape: Shape
    each: bool = False


def admitted(name: str, fact: Fact) -> Fact:
    """Return the fact, or Unread with the reason if its value does not have the shape for this name.

    `N/A` and `[Not Supported]` from nvidia-smi are not values: the fact is absent.
    """
    wanted = shape_of(name)
    if name.startswith("gpu."):
        fact = _said(fact)
    if isinstance(fact, Each):
        return _each(name, wanted, fact)
    if wanted and wanted.each and isinstance(fact, Value):
        return Unread("not understood: expected one value for each subject")
    return _single(wanted.shape if wanted else ANYTHING, fact)


def _said(fact: Fact) -> Fact:
    if isinstance(fact, Each):
        return Each({subject: _said_of_one(one) for subject, one in fact.of.items()})
    return _said_of_one(fact) if isinstance(fact, Value) else fact


def _said_of_one(fact: Single) -> Single:
    nothing = isinstance(fact, Value) and isinstance(fact.value, str) and fact.value.strip("[]").lower() in NO_VALUE
    return Absent("not supported by this GPU or driver") if nothing else fact


def _each(name: str, wanted: Wanted | None, fact: Each) -> Each | Unread:
    if wanted and not wanted.each:
        return Unread("not understood: expected one value, not one for each subject")
    most = MAX_GPUS if name.startswith("gpu.") and name != OF_PAIRS else MAX_MEMBERS
    if len(fact.of) > most:
        return Unread(f"not understood: expected at most {most} subjects")
    shape = wanted.shape if wanted else ANYTHING
    return Each({subject: _single(shape, one) for subject, one in fact.of.items()})


def _single(shape: Shape, fact: Single) -> Single:
    problem = shape.fault(fact.value) if isinstance(fact, Value) else ""
    return Unread(f"not understood: {plain_text.plain(problem, 200)}") if problem else fact


def is_wanted(name: str, asked: Asked) -> bool:
    """Return whether a fact was asked for (None: all are). A collector may have more: those that the table has by name."""
    return asked is None or name in asked or name in _table()


def shape_of(name: str) -> Wanted | None:
    """Return the shape of a fact; None for a name that is not in the table."""
    lines = _table()
    if name in lines:
        return _wanted(lines[name])
    family = next((each for each in _families() if name.startswith(each)), None)
    return _wanted(lines[f"{family}*"]) if family else None


@cache
def _table() -> dict[str, str]:
    """Return the notation of each fact, family (`sysctl.*`) and named shape (`setting =`)."""
    lines = (line.split(None, 1) for line in TABLE.read_text("utf-8").splitlines() if line and line[0] != "#")
    return {name: notation.strip() for name, notation in lines}


@cache
def _families() -> tuple[str, ...]:
    """Return the prefixes of families, the longest first."""
    return tuple(sorted((name[:-1] for name in _table() if name.endswith(".*")), key=len, reverse=True))


@cache
def _wanted(notation: str) -> Wanted:
    each = notation.startswith("each ")
    return Wanted(Notation(notation.removeprefix("each ")).read(), each)


class Notation:
    """Reads the notation of a shape, as the head of shapes.txt explains it."""

    def __init__(self, text: str) -> None:
        self.left = _TOKEN.findall(text)

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
            return Row(*self._until(")", self._shape))
        if sign == "{":
            return self._map() if self._next("*") else self._record()
        return WORDS[sign] if sign in WORDS else _wanted(_table()[sign].removeprefix("= ")).shape

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
