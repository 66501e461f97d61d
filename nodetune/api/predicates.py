"""Predicates that test a value and describe themselves. Standard library only.

Each is data: `to_data` returns the form in a site file or a prolog policy (`{at_least: 5}`), `from_data` reads it.
An operand may be a `Ref` to another fact; `resolve` replaces it by that fact's value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Union, get_args

from nodetune.api.model import Ref

Show = Callable[[Any], str]


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@dataclass(frozen=True)
class _Operand:
    """The base of all predicates: a dataclass takes half a millisecond to make."""

    wanted: Any


class Equals(_Operand):
    def test(self, value: Any) -> bool:
        return bool(value == self.wanted) and isinstance(value, bool) == isinstance(self.wanted, bool)

    def describe(self, show: Show = str) -> str:
        return show(self.wanted)


class AtLeast(_Operand):
    def test(self, value: Any) -> bool:
        return _number(value) and value >= self.wanted

    def describe(self, show: Show = str) -> str:
        return f"at least {show(self.wanted)}"


class AtMost(_Operand):
    def test(self, value: Any) -> bool:
        return _number(value) and value <= self.wanted

    def describe(self, show: Show = str) -> str:
        return f"at most {show(self.wanted)}"


class Within(_Operand):
    """Between two bounds, inclusive."""

    def test(self, value: Any) -> bool:
        low, high = self.wanted
        return _number(value) and low <= value <= high

    def describe(self, show: Show = str) -> str:
        return f"{show(self.wanted[0])} to {show(self.wanted[1])}"


class OneOf(_Operand):
    def test(self, value: Any) -> bool:
        return any(Equals(each).test(value) for each in self.wanted)

    def describe(self, show: Show = str) -> str:
        return " or ".join(show(each) for each in self.wanted)


class Matches(_Operand):
    """A regular expression that must be found in the text."""

    def test(self, value: Any) -> bool:
        return isinstance(value, str) and re.search(self.wanted, value) is not None

    def describe(self, show: Show = str) -> str:  # noqa: ARG002
        return f"text matching /{self.wanted}/"


class Contains(_Operand):
    """A list or text that contains the operand."""

    def test(self, value: Any) -> bool:
        return isinstance(value, (str, Sequence)) and self.wanted in value

    def describe(self, show: Show = str) -> str:
        return f"contains {show(self.wanted)}"


class Subset(_Operand):
    """A list whose members are all in the operand."""

    def test(self, value: Any) -> bool:
        return isinstance(value, Sequence) and not isinstance(value, str) and set(value) <= set(self.wanted)

    def describe(self, show: Show = str) -> str:
        return "nothing but " + ", ".join(show(each) for each in self.wanted)


@dataclass(frozen=True)
class Empty(_Operand):
    """Nothing: for checks that observe a list of faults. The operand describes it."""

    wanted: Any = "none"

    def test(self, value: Any) -> bool:
        return value is None or (isinstance(value, (str, Sequence, dict)) and len(value) == 0)

    def describe(self, show: Show = str) -> str:  # noqa: ARG002
        return str(self.wanted)


class Not(_Operand):
    def test(self, value: Any) -> bool:
        return not as_predicate(self.wanted).test(value)

    def describe(self, show: Show = str) -> str:
        return f"not {as_predicate(self.wanted).describe(show)}"


class Where(_Operand):
    """A mapping whose named entries satisfy their own predicates."""

    def test(self, value: Any) -> bool:
        return isinstance(value, dict) and all(
            key in value and as_predicate(each).test(value[key]) for key, each in self.wanted.items()
        )

    def describe(self, show: Show = str) -> str:
        return ", ".join(f"{key} {as_predicate(each).describe(show)}" for key, each in self.wanted.items())


NEXT_BOOT = "next boot"
"""The entry of the observation with the value that the next boot sets."""


class ByModel(_Operand):
    """The wanted value for each model: GPU model → value. None ignores a model; a missing model fails.

    It tests {model: value}, with the entry `next boot` if that sets another value. A number means the range of
    that number alone.
    """

    def test(self, value: Any) -> bool:
        if not isinstance(value, dict) or not isinstance(self.wanted, dict):
            return False
        models = [name for name in value if name != NEXT_BOOT]
        if not models or any(name not in self.wanted for name in models):
            return False
        if all(self.wanted[name] is None for name in models):
            return True
        later = NEXT_BOOT not in value or Equals(_range(self.wanted[models[0]])).test(_range(value[NEXT_BOOT]))
        return later and all(Equals(_range(self.wanted[name])).test(_range(value[name])) for name in models)

    def describe(self, show: Show = str) -> str:
        return ", ".join(f"{name} {'left alone' if each is None else show(each)}" for name, each in self.wanted.items())


def _range(value: Any) -> Any:
    return [value, value] if _number(value) else value


Predicate = Union[Equals, AtLeast, AtMost, Within, OneOf, Matches, Contains, Subset, Empty, Not, Where, ByModel]

BY_KEY: dict[str, type[Any]] = {
    re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower(): kind for kind in get_args(Predicate)
}
KEY_OF = {kind: key for key, kind in BY_KEY.items()}


def wants_number(accept: Any) -> bool:
    """Return whether only a number can satisfy this."""
    found = as_predicate(accept)
    return isinstance(found, (AtLeast, AtMost, Within)) or (isinstance(found, Equals) and _number(found.wanted))


def alike(accept: Any, other: Any) -> bool:
    """Return whether a value of one type can satisfy both. Where a type is unknown (a Ref, `not`), it can."""
    mine, theirs = _types(accept), _types(other)
    return not mine or not theirs or not mine.isdisjoint(theirs)


def _types(accept: Any) -> set[type]:
    """Return the types of values that can satisfy this; empty if unknown. A whole number is a float, too."""
    found = as_predicate(accept)
    if isinstance(found, OneOf):
        each = [_types(one) for one in found.wanted]
        return set().union(*each) if all(each) else set()
    if isinstance(found, Equals):
        kind = type(found.wanted)
        return set() if found.wanted is None or kind is Ref else {{int: float, tuple: list}.get(kind, kind)}
    return _TYPES.get(type(found), set())


_TYPES: dict[type, set[type]] = {
    AtLeast: {float},
    AtMost: {float},
    Within: {float},
    Matches: {str},
    Contains: {str, list},
    Subset: {list},
    Empty: {str, list, dict},
    Where: {dict},
    ByModel: {dict},
}


def as_predicate(accept: Any) -> Predicate:
    """Return a predicate unchanged; wrap any other value in Equals."""
    return accept if type(accept) in KEY_OF else Equals(accept)


def to_data(accept: Any) -> Any:
    """Convert `AtLeast(5)` to `{"at_least": 5}`, a Ref to `{"fact": name}`. It is the inverse of `from_data`."""
    if isinstance(accept, Ref):
        return {"fact": accept.fact}
    if type(accept) in KEY_OF:
        return {KEY_OF[type(accept)]: to_data(accept.wanted)}
    if isinstance(accept, dict):
        return {key: to_data(each) for key, each in accept.items()}
    if isinstance(accept, (list, tuple)):
        return [to_data(each) for each in accept]
    return accept


def operand_from_data(data: Any) -> Any:
    """Return a literal unchanged; turn `{fact: name}` into a Ref."""
    if isinstance(data, dict) and set(data) == {"fact"}:
        return Ref(str(data["fact"]))
    return data


def from_data(data: Any) -> Predicate:
    """Read a predicate from a site file or a policy.

    Raise ValueError with the key for an unknown predicate or invalid operands.
    """
    if not isinstance(data, dict):
        return Equals(data)
    if set(data) == {"fact"}:
        return Equals(operand_from_data(data))
    if len(data) != 1:
        raise ValueError(f"expected one predicate, found {', '.join(map(str, data)) or 'none'}")
    ((key, operand),) = data.items()
    if key not in BY_KEY:
        raise ValueError(f"unknown predicate {key!r}: use one of {', '.join(BY_KEY)}")
    return _built(key, operand)


def _built(key: str, operand: Any) -> Predicate:
    if key == "not":
        return Not(from_data(operand))
    if key == "where":
        if not isinstance(operand, dict):
            raise ValueError("where must be a mapping of entry to predicate")
        return Where({name: from_data(each) for name, each in operand.items()})
    if key == "by_model" and not (
        isinstance(operand, dict) and operand and all(isinstance(name, str) for name in operand)
    ):
        raise ValueError("by_model must be a mapping of GPU model (as shown by nvidia-smi -L) to value")
    if key == "within" and not (
        isinstance(operand, list) and len(operand) == 2 and all(map(_number, operand)) and operand[0] <= operand[1]
    ):
        raise ValueError("within must be two numbers: [low, high]")
    if key in ("at_least", "at_most") and not (_number(operand) or isinstance(operand_from_data(operand), Ref)):
        raise ValueError(f"{key} must be a number, found {operand!r}")
    if key in ("one_of", "subset") and not isinstance(operand, list):
        raise ValueError(f"{key} must be a list")
    if key == "matches":
        _check_pattern(operand)
    built: Predicate = BY_KEY[key](operand_from_data(operand))
    return built


def _check_pattern(operand: Any) -> None:
    try:
        re.compile(operand)
    except (re.error, TypeError) as problem:
        raise ValueError(f"matches must be a regular expression: {problem}") from None


def refs(data: Any) -> set[str]:
    """Return the names of all facts that a predicate (or a value to set) refers to."""
    if isinstance(data, Ref):
        return {data.fact}
    if type(data) in KEY_OF:
        return refs(data.wanted)
    parts = data.values() if isinstance(data, dict) else data if isinstance(data, (list, tuple)) else ()
    return {name for each in parts for name in refs(each)}


def resolve(data: Any, lookup: Callable[[str], Any]) -> Any:
    """Return the predicate (or value) with every Ref replaced by `lookup(name)`."""
    if isinstance(data, Ref):
        return lookup(data.fact)
    if type(data) in KEY_OF:
        return type(data)(resolve(data.wanted, lookup))
    if isinstance(data, dict):
        return {key: resolve(each, lookup) for key, each in data.items()}
    if isinstance(data, (list, tuple)):
        return type(data)(resolve(each, lookup) for each in data)
    return data
