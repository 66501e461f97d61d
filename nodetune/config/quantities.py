"""Quantities in site files: `256MiB` instead of a number in the check's unit."""

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from nodetune import checks
from nodetune.foundation.yaml_lines import LocatedYaml

_BYTES = {"B": 1, "bytes": 1} | {f"{sign}iB": 1 << 10 * power for power, sign in enumerate("KMGTP", 1)}
_BYTES |= {f"{sign}B": 1000**power for power, sign in enumerate("kMGTP", 1)} | {"KB": 1000}
_SECONDS = {"us": 1, "ms": 1000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000}
_RATES = {"Mb/s": 1, "Gb/s": 1000}
_POWERS = {"mW": 1, "W": 1000, "kW": 1_000_000}
_CLOCKS = {"MHz": 1, "GHz": 1000}
_EXAMPLES = {"bytes": "256MiB", "KiB": "256MiB", "MiB": "16GiB", "us": "2ms", "s": "5min", "Mb/s": "100Gb/s"}
_EXAMPLES |= {"mW": "700W", "MHz": "1.98GHz"}
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z%/]*)")
_TEXTS = ("fact", "matches", "empty")
"""Members of a predicate whose operand is not a quantity."""


def example(unit: str) -> str:
    """Return an example of a quantity in this unit; empty if a site file must write a number."""
    return _EXAMPLES.get(unit, "")


def has_quantity(data: Any) -> bool:
    """Return whether a predicate or value, as data, contains a text that begins like a quantity."""
    if isinstance(data, Mapping):
        return any(has_quantity(each) for key, each in data.items() if key not in _TEXTS)
    if isinstance(data, list):
        return any(map(has_quantity, data))
    return isinstance(data, str) and data[:1].isdigit()


def converted(data: Any, unit: str) -> Any:
    """Return a predicate or value, as data, with each quantity as a number of `unit`. Raise ValueError."""
    return _each(data, lambda text: _number(text, unit)) if unit in _EXAMPLES else data


def in_unit_of(check_id: str, key: str, given: Any, file: LocatedYaml, at: tuple[Any, ...]) -> Any:
    """Return `accept` or `set` of an override with quantities as numbers in the unit of the check. Raise FileError."""
    if not has_quantity(given) or check_id not in checks.catalogue():
        return given
    check = checks.load(check_id)
    if key == "set" and isinstance(check.set, str):  # the file of this setting has units of its own
        return given
    try:
        return converted(given, check.unit)
    except ValueError as problem:
        file.fail(f"{key}: {problem}", *at, key)


def _each(data: Any, change: Callable[[str], Any]) -> Any:
    if isinstance(data, Mapping):
        return {key: each if key in _TEXTS else _each(each, change) for key, each in data.items()}
    if isinstance(data, list):
        return [_each(each, change) for each in data]
    return change(data) if isinstance(data, str) and data[:1].isdigit() else data


def _number(text: str, unit: str) -> int | float:
    family = next(each for each in (_BYTES, _SECONDS, _RATES, _POWERS, _CLOCKS) if unit in each)
    found = _QUANTITY.fullmatch(text.strip())
    if found is None or found[2] not in family:
        raise ValueError(
            f"{text!r} is not a quantity here: write a number of {unit}, or a text such as {example(unit)}"
        )
    amount = Fraction(found[1]) * family[found[2]] / family[unit]
    if amount.denominator != 1 and unit in _BYTES:
        raise ValueError(f"{text!r} is not a whole number of {unit}")
    return int(amount) if amount.denominator == 1 else float(amount)
