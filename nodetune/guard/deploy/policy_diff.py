"""The differences to another policy: gating checks and settings. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nodetune.guard.deploy.policy import DEFAULTS


@dataclass(frozen=True)
class PolicyDiff:
    """The differences to another policy: ids of checks, and settings as (name, before, after)."""

    gates: tuple[str, ...] = ()
    gates_no_more: tuple[str, ...] = ()
    judged_otherwise: tuple[str, ...] = ()
    settings: tuple[tuple[str, Any, Any], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.gates or self.gates_no_more or self.judged_otherwise or self.settings)


SETTINGS = (*DEFAULTS, "waivers", "profile", "nodetune")


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> PolicyDiff:
    """Return how `after` differs from `before` (empty: nothing is installed)."""
    old, new = ({check["id"]: check for check in policy.get("checks", ())} for policy in (before, after))
    return PolicyDiff(
        tuple(sorted(set(new) - set(old))),
        tuple(sorted(set(old) - set(new))),
        tuple(sorted(name for name in set(old) & set(new) if _judged(old[name]) != _judged(new[name]))),
        tuple(
            (name, before.get(name), after.get(name))
            for name in SETTINGS
            if before and before.get(name) != after.get(name)
        ),
    )


def _judged(check: Mapping[str, Any]) -> Any:
    return {name: check.get(name) for name in ("accept", "severity", "about", "fact")}
