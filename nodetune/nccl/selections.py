"""How NCCL reads a choice of interfaces or adapters, and what can be wrong with one whatever the host has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class Selection:
    """`^=a,b:1`: ^ (all but) and = (exact names) count only at the start, in that order, and then for every token."""

    def __init__(self, value: str) -> None:
        self.excludes = value.startswith("^")
        rest = value[1:] if self.excludes else value
        self.exact = rest.startswith("=")
        self.tokens = [token for token in rest[1 if self.exact else 0 :].split(",") if token]

    def matches(self, token: str, name: str) -> bool:
        wanted = token.partition(":")[0]
        return name == wanted if self.exact else name.startswith(wanted)

    def misplaced(self) -> list[str]:
        """Tokens whose ^ or = is too late to mean anything, or that begin or end with a blank."""
        return [token for token in self.tokens if token[0] in "^=" or token != token.strip()]

    def too_wide(self, names: Iterable[str]) -> dict[str, list[str]]:
        """Tokens that are the name of one thing and the beginning of others' names too."""
        names = list(names)
        wide = {token: [name for name in names if self.matches(token, name)] for token in self.tokens}
        return {token: hits for token, hits in wide.items() if len(hits) > 1 and token.partition(":")[0] in names}

    def selected(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if any(self.matches(token, name) for token in self.tokens) != self.excludes]


def misshapen(value: str) -> str:
    """What is wrong with the form of a choice."""
    if len(value) == 1:
        return f"NCCL ignores a value of one character ({value!r})"
    odd = Selection(value).misplaced()
    return f"{', '.join(odd)} is taken literally: ^ and = count only at the very start of the value" if odd else ""


def takes_too_much(selection: Selection, names: Iterable[str]) -> str:
    """Which tokens catch more than the one thing whose name they are, and how to write the choice exactly."""
    wide = selection.too_wide(names)
    exact = f"{'^' if selection.excludes else ''}={','.join(selection.tokens)}"
    return f"{_said(wide)}: exact names are {exact}" if wide else ""


def _said(wide: Mapping[str, list[str]]) -> str:
    return "; ".join(
        f"{token} also means {', '.join(name for name in hits if name != token)}" for token, hits in wide.items()
    )
