"""Findings of one cause become one: the leading check reports the others with it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from nodetune.api.model import SEVERITIES, Check, Finding

MOST_KNOWN = 4096


class OneCause:
    """Joins the findings of a host. Hosts with the same findings get the same objects."""

    def __init__(self, checks: Iterable[Check]) -> None:
        self._leader_of = {check.id: check.part_of for check in checks if check.part_of}
        self._known: dict[tuple[int, ...], tuple[tuple[Finding, ...], tuple[Finding, ...]]] = {}

    def joined(self, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """Return the findings, with each part marked that a failing leader reports."""
        failing = {found.check: found for found in findings if found.status == "fail"}
        parts: dict[str, list[Finding]] = {}
        for check, leader in self._leader_of.items():
            if check in failing and leader in failing and _may_join(failing[check], failing[leader]):
                parts.setdefault(leader, []).append(failing[check])
        if not parts:
            return findings
        changed = {new.check: new for leader, mine in parts.items() for new in self._group(failing[leader], mine)}
        return tuple(changed.get(found.check, found) for found in findings)

    def _group(self, leader: Finding, parts: list[Finding]) -> tuple[Finding, ...]:
        given = (leader, *parts)
        key = tuple(map(id, given))
        if key not in self._known:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[key] = given, _joined(leader, parts)  # holding what is given keeps its id from being used again
        return self._known[key][1]


def _may_join(part: Finding, leader: Finding) -> bool:
    """Return whether the leader says enough: a part that weighs more, or that gates, stands alone."""
    return SEVERITIES.index(part.severity) <= SEVERITIES.index(leader.severity) and not part.gates


def _joined(leader: Finding, parts: list[Finding]) -> tuple[Finding, ...]:
    also = "with it: " + ", ".join(f"{part.check} ({part.observed})" for part in parts)
    reason = "; ".join(filter(None, (leader.reason, also)))
    return (replace(leader, reason=reason), *(replace(part, part_of=leader.check) for part in parts))


def parts_of(findings: Iterable[Finding]) -> dict[str, list[str]]:
    """Return leading check → the checks that its finding reports too."""
    found: dict[str, list[str]] = {}
    for each in findings:
        if each.part_of and each.check not in found.setdefault(each.part_of, []):
            found[each.part_of].append(each.check)
    return found
