"""How NCCL reads a value: numbers as C does, words without regard to case."""

from __future__ import annotations

import re
from typing import Any

MOST_DIGITS = 40  # of what is looked at: longer numbers come from no administrator
_NUMBER = re.compile(r"\s*([+-]?)(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)")


def number(value: str) -> tuple[int, str]:
    """What C's strtoll makes of it with base 0, and the rest that it leaves: `010` is 8, `4M` is 4 and leaves M."""
    found = _NUMBER.match(value)
    if not found:
        return 0, value
    digits = found[2]
    base = 16 if digits[:2] in ("0x", "0X") else 8 if digits[0] == "0" else 10
    return int(found[1] + digits[:MOST_DIGITS], base), value[found.end() :]


def is_at(value: str, wanted: Any) -> bool:
    """Whether a value is (one of) the wanted."""
    if isinstance(wanted, list):
        return any(is_at(value, one) for one in wanted)
    if isinstance(wanted, int):
        return bool(_NUMBER.match(value)) and number(value)[0] == wanted
    return value.lower() == str(wanted).lower()


def lists(value: str) -> list[str]:
    """The lists in a choice per operation: `Ring;allreduce:^Tree` → Ring and ^Tree."""
    return [part.rpartition(":")[2] for part in value.split(";")]
