"""How NCCL reads a value: numbers as C does, words without regard to case, selections of interfaces or adapters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

MAX_DIGITS = 40  # longer numbers are cut: no administrator writes them
MAX_TOKENS, MAX_NAMED = 64, 20
_NUMBER = re.compile(r"\s*([+-]?)(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)")


def number(value: str) -> tuple[int, str]:
    """Return the result of C's strtoll with base 0, and the unread rest: `010` is 8, `4M` is 4 and leaves M."""
    found = _NUMBER.match(value)
    if not found:
        return 0, value
    digits = found[2]
    base = 16 if digits[:2] in ("0x", "0X") else 8 if digits[0] == "0" else 10
    return int(found[1] + digits[:MAX_DIGITS], base), value[found.end() :]


def is_at(value: str, wanted: Any) -> bool:
    """Return whether a value is (one of) the wanted values."""
    if isinstance(wanted, list):
        return any(is_at(value, one) for one in wanted)
    if isinstance(wanted, int):
        return bool(_NUMBER.match(value)) and number(value)[0] == wanted
    return value.lower() == str(wanted).lower()


def lists(value: str) -> list[str]:
    """Return the lists in a choice per operation: `Ring;allreduce:^Tree` → Ring and ^Tree."""
    return [part.rpartition(":")[2] for part in value.split(";")]


class NcclSelection:
    """A selection such as `^=a,b:1`.

    ^ (all but) and = (exact names) count only at the start, in that order, and then for every token.
    """

    def __init__(self, value: str) -> None:
        self.excludes = value.startswith("^")
        rest = value[1:] if self.excludes else value
        self.exact = rest.startswith("=")
        self.tokens = [token for token in rest[1 if self.exact else 0 :].split(",") if token]

    def matches(self, token: str, name: str) -> bool:
        wanted = token.partition(":")[0]
        return name == wanted if self.exact else name.startswith(wanted)

    def misplaced(self) -> list[str]:
        """Return tokens whose ^ or = comes too late to count, or that begin or end with a blank."""
        return [token for token in self.tokens if token[0] in "^=" or token != token.strip()]

    def too_wide(self, names: Iterable[str]) -> dict[str, list[str]]:
        """Return tokens that are one name and also a prefix of other names."""
        names = dict.fromkeys(names)
        whole = (token for token in self.tokens if token.partition(":")[0] in names)
        wide = {token: [name for name in names if self.matches(token, name)] for token in whole}
        return {token: hits for token, hits in wide.items() if len(hits) > 1}

    def selected(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if any(self.matches(token, name) for token in self.tokens) != self.excludes]


def misshapen(value: str) -> str:
    """Return what is wrong with the form of a selection."""
    if len(value) == 1:
        return f"NCCL ignores a value of one character ({value!r})"
    selection = NcclSelection(value)
    if len(selection.tokens) > MAX_TOKENS:
        return f"{len(selection.tokens)} names: NCCL reads the first 32 at most"
    odd = selection.misplaced()
    return f"{', '.join(odd)} is taken literally: ^ and = count only at the very start of the value" if odd else ""


def takes_too_much(selection: NcclSelection, names: Iterable[str]) -> str:
    """Return the tokens that match more than their own name, and the exact form of the selection."""
    wide = selection.too_wide(names)
    exact = f"{'^' if selection.excludes else ''}={','.join(selection.tokens)}"
    return f"{_describe(wide)}: write {exact}" if wide else ""


def _describe(wide: Mapping[str, list[str]]) -> str:
    return "; ".join(
        f"{token} also matches {', '.join([name for name in hits if name != token][:MAX_NAMED])}"
        for token, hits in wide.items()
    )
