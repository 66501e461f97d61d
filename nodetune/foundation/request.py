"""The fields of requests. A request is all that a command is asked to do, as a frozen dataclass of its stage.

The command line takes the default and the range of an option from the field of the same name (nodetune/cli/requests.py).
"""

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Any, TypeVar

from nodetune.foundation import UserError

T = TypeVar("T")


class RequestError(UserError):
    """Values of a request contradict each other; the text is one line: which ones, and what to do."""


def limited(default: T, least: float, most: float | None = None, *, whole: bool = True) -> T:
    """Return a field for a number from `least` to `most`."""
    return field(default=default, metadata={"least": least, "most": most, "whole": whole})


def one_of(default: T, choices: Iterable[str]) -> T:
    """Return a field for one of these words."""
    return field(default=default, metadata={"choices": tuple(choices)})


def built() -> Any:
    """Return a field that is built from several options, after the others: the connection, the selection of checks."""
    return field(default=None)


def part(kind: Callable[[], T]) -> T:
    """Return a field whose value is a dataclass: its fields are options too."""
    return field(default_factory=kind, metadata={"part": kind})


def limits(kind: Any, name: str) -> dict[str, Any]:
    """Return what the field says: default, least, most, choices."""
    found = kind.__dataclass_fields__[name]
    return {"default": found.default, **found.metadata}
