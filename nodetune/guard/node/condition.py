"""Looks at a node → its condition in Kubernetes. Pure.

A look is what one health check found. Three looks in a row must agree before the condition says so; a look that could
not judge agrees with nothing, and then the status stays as it is. After three of them in a row, reason and message say so.

A second condition remembers how many GPUs and network adapters the node had: it is where a reboot, and a new disk, leave it.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from nodetune.checks.shared import hardware_parts
from nodetune.foundation import text as plain_text
from nodetune.guard.node.hardware import CHECK

TYPE, HARDWARE = "NodetuneGPUProblem", "NodetuneHardware"
TYPES = (TYPE, HARDWARE)
LOOKS = 3
ALL = "all"
"""Instead of the ids of checks: every check counts."""
MAX_MESSAGE_LENGTH = 500
REASONS = {"True": "GatingCheckFails", "False": "GatingChecksPass"}
OBSERVED = "GatingCheckWouldFail"
"""The reason of a False while a check fails that is only observed."""
NOT_JUDGED = "GatingChecksNotJudged"
"""The reason while nothing can be judged, whatever the status."""
MEMORY = re.compile(r"(\d{1,4}) GPUs, (\d{1,4}) network adapters \(machine ([0-9a-f]{16})\)")
UNJUDGED = re.compile(r"not judged since (\S+): .*; before: (.*)", re.DOTALL)


@dataclass(frozen=True)
class Condition:
    """`status` is "True" where the node has a problem. Conditions are equal if they say the same, in whatever words."""

    status: str
    reason: str
    checks: tuple[str, ...] = ()
    message: str = field(default="all gating checks pass", compare=False)


@dataclass(frozen=True)
class CheckResults:
    """The checks that fail (check → observed), and those that could not be judged (→ reason). With `why`, none could be judged."""

    failed: Mapping[str, str]
    unknown: Mapping[str, str] = field(default_factory=dict)
    why: str = ""
    hardware: Mapping[str, Any] | None = None
    """The numbers of parts that the check container counted; None where nobody asks."""


def look(result: Any) -> CheckResults:
    """Return the look from the data of a health check. Other data is a look that could not judge."""
    if not isinstance(result, Mapping) or result.get("verdict") not in ("pass", "fail", "inconclusive"):
        return CheckResults({}, why="the result of the check cannot be read")
    if result["verdict"] == "inconclusive" and not result.get("unknown"):
        return CheckResults({}, why=str(result.get("reason") or "the check gives no reason"))
    failed, unknown = _named(result.get("findings")), _named(result.get("unknown"))
    counted = result.get("hardware")
    return CheckResults(
        {check: _seen(data) for check, data in failed.items()},
        {check: str(data.get("reason") or "not read") for check, data in unknown.items()},
        hardware=counted if isinstance(counted, Mapping) else None,
    )


def _named(findings: Any) -> dict[str, Mapping[str, Any]]:
    listed = findings if isinstance(findings, list) else []
    return {str(each["check"]): each for each in listed if isinstance(each, Mapping) and each.get("check")}


def _seen(data: Mapping[str, Any]) -> str:
    return str(data.get("subjects") or data.get("observed") or data.get("reason") or "fails")


def with_memory(seen: CheckResults, before: str | None) -> tuple[CheckResults, str]:
    """Return the look with what is missing of the hardware that the node had, and the new memory; empty: it stays.

    `before` is the memory; empty if the node has none, None while the API server has not said it.
    """
    now = seen.hardware
    if now is None or seen.why:
        return seen, ""
    if before is None or "unread" in now:
        return _unknown_hardware(
            seen, str(now.get("unread") or "the API server has not said yet how many there were")
        ), ""
    try:
        machine, virtual = str(now["machine"]), bool(now["virtual"])
        have = {kind: int(now[kind]) for kind in hardware_parts.NAMES}
        promised = int(now["promised"])
    except (KeyError, TypeError, ValueError):
        return _unknown_hardware(seen, "the result of the check cannot be read"), ""
    had = _remembered(before, machine) or {}
    missing, unsure = hardware_parts.judge(had, have, promised, virtual=virtual)
    most = hardware_parts.most(had, have)
    new = f"{most['gpus']} GPUs, {most['adapters']} network adapters (machine {machine})"
    memory = new if new != before and (had or not missing) else ""
    if unsure:
        return _unknown_hardware(seen, f"{missing}: {unsure}"), memory
    return (replace(seen, failed={**seen.failed, CHECK: missing}) if missing else seen), memory


def _unknown_hardware(seen: CheckResults, why: str) -> CheckResults:
    return replace(seen, unknown={**seen.unknown, CHECK: why})


def _remembered(memory: str, machine: str) -> dict[str, int] | None:
    """Return what the memory says of this machine; None if it is of another one, or no memory."""
    found = MEMORY.fullmatch(memory)
    return {"gpus": int(found[1]), "adapters": int(found[2])} if found and found[3] == machine else None


class RecentChecks:
    """The last looks at a node. `enforced` are the checks that make a problem; the others are only observed."""

    def __init__(self, enforced: Collection[str] = ()) -> None:
        self._enforced = frozenset(enforced)
        self._last: deque[CheckResults] = deque(maxlen=LOOKS)

    def add(self, seen: CheckResults) -> None:
        """Take a look. What an enforced check says holds for the parts that are there: missing ones are not judged."""
        if self._enforced and CHECK in seen.failed and not self._counts(CHECK):
            failed = dict(seen.failed)
            seen = replace(seen, unknown={**seen.unknown, CHECK: failed.pop(CHECK)}, failed=failed)
        self._last.append(seen)

    def not_judged(self) -> str:
        """Return why none of the last looks could judge; empty if one of them could."""
        whys = [self._why_not(each) for each in self._last]
        return whys[-1] if len(whys) == LOOKS and all(whys) else ""

    def judged(self) -> bool:
        """Return whether the last look could judge."""
        return bool(self._last) and not self._why_not(self._last[-1])

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
        return any(self._why_not(each) for each in self._last)

    def _why_not(self, seen: CheckResults) -> str:
        """Return why a look could not judge what counts."""
        counts = (check for check in seen.unknown if self._counts(check) or not self._enforced or check == CHECK)
        return seen.why or "; ".join(f"{check}: {seen.unknown[check]}" for check in counts)

    def _said(self, status: str, reason: str, checks: Collection[str]) -> Condition:
        named, seen = tuple(sorted(checks)), self._last[-1].failed
        begin = "" if status == "True" else "observed only: "
        said = begin + "; ".join(f"{check}: {seen[check]}" for check in named)
        return Condition(status, reason, named, plain_text.plain(" ".join(said.split()), MAX_MESSAGE_LENGTH))
