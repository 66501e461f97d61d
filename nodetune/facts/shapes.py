"""Shapes of values. `fault` describes what is wrong with a value; empty if nothing is. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

DEEPEST = 12
"""Levels of lists and objects. Real facts have five."""

MAX_TEXT_LENGTH, MAX_FILE, MAX_NAME_LENGTH = 64 << 10, 256 << 10, 4096
"""Characters of a text, of a whole file (64 KiB that may be escaped), and of a name in an object."""

MAX_MEMBERS = 10_000
"""Members of a list or an object. The largest hosts have some hundreds of devices and a few thousand links."""

LARGEST = 1 << 64

DEEPEST_FILE = 100
"""Open brackets in a file. Python reads JSON with hundreds of levels; nodetune's files have six."""


@dataclass(frozen=True)
class Number:
    """A whole number within bounds; with `fraction` also one with a fraction. Never a truth value."""

    least: int = -LARGEST
    most: int = LARGEST
    fraction: bool = False
    many: ClassVar[str] = "numbers"

    def fault(self, value: Any) -> str:
        if (type(value) is int or (self.fraction and type(value) is float)) and self.least <= value <= self.most:
            return ""
        bounds = "" if self.most == LARGEST else f" from {self.least} to {self.most}"
        return f"a {'' if self.fraction else 'whole '}number{bounds} is expected"


@dataclass(frozen=True)
class Text:
    longest: int = MAX_TEXT_LENGTH
    many: ClassVar[str] = "texts"

    def fault(self, value: Any) -> str:
        if type(value) is not str:
            return "a text is expected"
        return "" if len(value) <= self.longest else f"a text of at most {self.longest} characters is expected"


class Word(Text):
    """A state in nodetune's spelling, such as `enabled`; other tools write `Enabled` or `On`."""

    many: ClassVar[str] = "words"

    def fault(self, value: Any) -> str:
        return super().fault(value) or ("a lower-case word is expected" if value[:1].isupper() else "")


@dataclass(frozen=True)
class File(Text):
    """A whole file. Its data is not nested too deeply to be read."""

    longest: int = MAX_FILE

    def fault(self, value: Any) -> str:
        problem = super().fault(value)
        if problem or value.count("{") + value.count("[") <= DEEPEST_FILE or _nesting(value) <= DEEPEST_FILE:
            return problem
        return f"a file with data of at most {DEEPEST_FILE} levels is expected"


def _nesting(text: str) -> int:
    deepest = level = 0
    for sign in text:
        if sign in "{[":
            level += 1
            deepest = max(deepest, level)
        elif sign in "}]" and level:
            level -= 1
    return deepest


@dataclass(frozen=True)
class Flag:
    many: ClassVar[str] = "truth values"

    def fault(self, value: Any) -> str:
        return "" if type(value) is bool else "true or false is expected"


class OneOf:
    """Any of several shapes."""

    many: ClassVar[str] = "values"

    def __init__(self, *shapes: Shape) -> None:
        self.shapes = shapes

    def fault(self, value: Any) -> str:
        problems = []
        for shape in self.shapes:
            problem = shape.fault(value)
            if not problem:
                return ""
            problems.append(problem.removesuffix(" is expected"))
        return f"{' or '.join(problems)} is expected"


@dataclass(frozen=True)
class Missing:
    """Null: the host has no value."""

    many: ClassVar[str] = "nothing"

    def fault(self, value: Any) -> str:
        return "" if value is None else "nothing is expected"


@dataclass(frozen=True)
class ListOf:
    """A list of members of one shape; at most `most` and at least `least` of them."""

    of: Shape
    most: int = MAX_MEMBERS
    least: int = 0
    many: ClassVar[str] = "lists"

    def fault(self, value: Any) -> str:
        if type(value) is not list:
            return f"a list of {self.of.many} is expected"
        if not self.least <= len(value) <= self.most:
            bounds = str(self.most) if self.least == self.most else f"at most {self.most}"
            return f"a list of {bounds} {self.of.many} is expected"
        return next(filter(None, map(self.of.fault, value)), "")


class Row:
    """A list of fixed length in which each place has its own shape."""

    many: ClassVar[str] = "lists"

    def __init__(self, *shapes: Shape) -> None:
        self.shapes = shapes

    def fault(self, value: Any) -> str:
        if type(value) is not list or len(value) != len(self.shapes):
            return f"a list of {len(self.shapes)} values is expected"
        return next(filter(None, (shape.fault(each) for shape, each in zip(self.shapes, value, strict=True))), "")


@dataclass(frozen=True)
class MapOf:
    """An object with any names, whose values have one shape."""

    of: Shape
    most: int = MAX_MEMBERS
    many: ClassVar[str] = "objects"

    def fault(self, value: Any) -> str:
        return _object(value, self.most) or next(filter(None, map(self.of.fault, value.values())), "")


@dataclass(frozen=True)
class Record:
    """An object with known names. All but the `needed` ones are optional; other names may have any value."""

    shapes: Mapping[str, Shape]
    needed: Sequence[str] = ()
    many: ClassVar[str] = "objects"

    def fault(self, value: Any) -> str:
        problem = _object(value, MAX_MEMBERS)
        if problem:
            return problem
        for name, each in value.items():
            problem = self.shapes.get(name, ANYTHING).fault(each)
            if problem:
                return f"{name}: {problem}"
        return next((f"{name} is missing" for name in self.needed if name not in value), "")


class Anything:
    """Any JSON within the bounds of depth and length."""

    many: ClassVar[str] = "values"

    def fault(self, value: Any, depth: int = 0) -> str:
        if type(value) in SCALARS:
            return SCALARS[type(value)].fault(value)
        if depth >= DEEPEST:
            return f"at most {DEEPEST} levels are expected"
        if type(value) is dict:
            problem = _object(value, MAX_MEMBERS)
            if problem:
                return problem
        elif len(value) > MAX_MEMBERS:
            return f"a list of at most {MAX_MEMBERS} values is expected"
        members = value.values() if type(value) is dict else value
        return next(filter(None, (self.fault(each, depth + 1) for each in members)), "")


def _object(value: Any, most: int) -> str:
    """Return the fault in the names of an object."""
    if type(value) is not dict:
        return "an object is expected"
    if len(value) > most:
        return f"an object of at most {most} values is expected"
    too_long = max(map(len, value), default=0) > MAX_NAME_LENGTH
    return f"names of at most {MAX_NAME_LENGTH} characters are expected" if too_long else ""


Shape = Number | Text | Flag | OneOf | Missing | ListOf | Row | MapOf | Record | Anything

ANYTHING = Anything()
SCALARS: dict[type, Shape] = {
    str: Text(),
    int: Number(),
    float: Number(fraction=True),
    bool: Flag(),
    type(None): Missing(),
}
