"""Looks at a node → its condition in Kubernetes. Pure.

A look is what one health check found. Three looks in a row must agree before the condition says so; a look that could
not judge agrees with nothing, and then the condition stays as it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from nodetune.foundation import text as plain_text

TYPE = "NodetuneGPUProblem"
LOOKS = 3
ALL = "all"
"""Instead of the ids of checks: every check counts."""
MAX_MESSAGE_LENGTH = 500
REASONS = {"True": "GatingCheckFails", "False": "GatingChecksPass"}
OBSERVED = "GatingCheckWouldFail"
"""The reason of a False while a check fails that is only observed."""


@dataclass(frozen=True)
class Condition:
    """`status` is "True" where the node has a problem. Conditions are equal if they say the same, in whatever words."""

    status: str
    reason: str
    checks: tuple[str, ...] = ()
    message: str = field(default="all gating checks pass", compare=False)


@dataclass(frozen=True)
class CheckResults:
    """The checks that fail (check → observed), and those that could not be judged. With `why`, none could be judged."""

    failed: Mapping[str, str]
    unknown: Collection[str] = ()
    why: str = ""


def look(result: Any) -> CheckResults:
    """Return the look from the data of a health check. Other data is a look that could not judge."""
    if not isinstance(result, Mapping) or result.get("verdict") not in ("pass", "fail", "inconclusive"):
        return CheckResults({}, why="the result of the check cannot be read")
    if result["verdict"] == "inconclusive" and not result.get("unknown"):
        return CheckResults({}, why=str(result.get("reason") or "the check gives no reason"))
    failed, unknown = _named(result.get("findings")), _named(result.get("unknown"))
    return CheckResults({check: _seen(data) for check, data in failed.items()}, tuple(unknown))


def _named(findings: Any) -> dict[str, Mapping[str, Any]]:
    listed = findings if isinstance(findings, list) else []
    return {str(each["check"]): each for each in listed if isinstance(each, Mapping) and each.get("check")}


def _seen(data: Mapping[str, Any]) -> str:
    return str(data.get("subjects") or data.get("observed") or data.get("reason") or "fails")


class RecentChecks:
    """The last looks at a node. `enforced` are the checks that make a problem; the others are only observed."""

    def __init__(self, enforced: Collection[str] = ()) -> None:
        self._enforced = frozenset(enforced)
        self._last: deque[CheckResults] = deque(maxlen=LOOKS)

    def add(self, seen: CheckResults) -> None:
        self._last.append(seen)

    def forget(self) -> None:
        """Begin again: what comes next is too far from what was."""
        self._last.clear()

    def condition(self) -> Condition | None:
        """Return what the last looks agree on; None if they do not agree or could not judge."""
        if len(self._last) < LOOKS or any(each.why for each in self._last):
            return None
        always = set.intersection(*(set(each.failed) for each in self._last))
        problems = [check for check in always if self._counts(check)]
        if problems:
            return self._said("True", REASONS["True"], problems)
        if any(self._counts(check) for each in self._last for check in each.failed) or self._unknown():
            return None
        return self._said("False", OBSERVED, always) if always else Condition("False", REASONS["False"])

    def _counts(self, check: str) -> bool:
        return ALL in self._enforced or check in self._enforced

    def _unknown(self) -> bool:
        """Return whether a look could not judge a check that counts; if none counts, all must be judged."""
        return any(self._counts(check) or not self._enforced for each in self._last for check in each.unknown)

    def _said(self, status: str, reason: str, checks: Collection[str]) -> Condition:
        named, seen = tuple(sorted(checks)), self._last[-1].failed
        begin = "" if status == "True" else "observed only: "
        said = begin + "; ".join(f"{check}: {seen[check]}" for check in named)
        return Condition(status, reason, named, plain_text.plain(" ".join(said.split()), MAX_MESSAGE_LENGTH))
