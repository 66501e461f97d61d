"""What the HTML page knows, compactly: texts and findings are held once, hosts point at them by number."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from nodetune import __version__, explain, show
from nodetune.model import SEVERITIES, Check, Finding, HostResult
from nodetune.report.html_since import Before, Change

TOLD = ("fail", "unknown", "waived")
"""The findings that the page tells of in full. Of others it knows that they passed, or why they do not apply."""


class Pool:
    """Numbers for values: the same value, the same number."""

    def __init__(self) -> None:
        self.known: dict[Any, int] = {}

    def number(self, value: Hashable) -> int:
        return self.known.setdefault(value, len(self.known))

    def values(self) -> list[Any]:
        return list(self.known)


class Compact:
    """Takes results one by one; keeps of each what the page shows."""

    def __init__(self, checks: Mapping[str, Check], before: Before | None = None) -> None:
        self._checks, self._before = checks, before
        self._ids, self._texts, self._findings, self._judged, self._skipped = (Pool() for _ in range(5))
        self._titles: dict[str, str] = {}
        self._manual: dict[str, str] = {}
        self._hosts: list[list[Any]] = []

    def add(self, result: HostResult) -> None:
        """One host."""
        text = self._texts.number
        told = [self._told(found) for found in result.findings if found.status in TOLD]
        judged = tuple([self._ids.number(found.check) for found in result.findings])
        skipped = tuple(
            [(self._ids.number(each.check), text(each.reason)) for each in result.findings if each.status == "skip"]
        )
        profile = f"{result.profile} ({result.profile_reason})" if result.profile_reason else result.profile
        row = [
            show.plain(result.host),
            text(result.state),
            text(show.plain(result.message, 1000)),
            text(show.plain(profile)),
            self._judged.number(judged),
            self._skipped.number(skipped),
            told,
        ]
        self._hosts.append([*row, *self._changed(result)])

    def _told(self, found: Finding) -> int:
        text = self._texts.number
        if found.check not in self._titles:
            self._titles[found.check] = found.title
            self._manual[found.check] = found.manual
        fix = f"{show.plain(found.fix.target)} = {show.value(found.fix.value, found.fix.unit)}" if found.fix else ""
        return self._findings.number(
            (
                self._ids.number(found.check),
                TOLD.index(found.status),
                SEVERITIES.index(found.severity),
                text(seen(found)),
                text(found.wanted),
                text(found.reason),
                text(fix),
                text(found.fix.disruption if found.fix else ""),
                int(found.gates),
            )
        )

    def _changed(self, result: HostResult) -> list[Any]:
        """Nothing where nothing changed since the last audit: [new checks, [gone check, status now] …, added]."""
        change = self._before.change(result) if self._before else Change()
        if change == Change():
            return []
        number = self._ids.number
        return [[[*map(number, change.new)], [[number(each), now] for each, now in change.gone], int(change.added)]]

    def title(self) -> str:
        """What the page is about, in a few words."""
        return str(self._hosts[0][0]) if len(self._hosts) == 1 else f"{len(self._hosts)} hosts"

    def document(self, asked: str = "", now: float | None = None) -> dict[str, Any]:
        """The whole, as JSON data."""
        names = self._ids.values()
        before = self._before
        return {
            "page": 1,
            "nodetune": __version__,
            "time": int(time.time() if now is None else now),
            "asked": asked,
            "since": {"time": before.time, "lost": sorted(before.hosts.keys() - {host[0] for host in self._hosts})}
            if before
            else None,
            "checks": [self._check(name) for name in names],
            "texts": self._texts.values(),
            "findings": self._findings.values(),
            "judged": self._judged.values(),
            "skipped": self._skipped.values(),
            "hosts": self._hosts,
        }

    def _check(self, name: str) -> dict[str, Any]:
        """What the page teaches about a check; of one that nowhere failed, its name and title are enough."""
        check = self._checks.get(name)
        told: dict[str, Any] = {"id": name, "area": check.area if check and check.area else "site"}
        told["title"] = self._titles.get(name) or (check.title if check else name)
        if name in self._titles and check:
            told |= {"fix": explain.fix(check), "taught": explain.explain(check).sections}
        return told | ({"manual": self._manual[name]} if self._manual.get(name) else {})


def compact(results: Iterable[HostResult], checks: Mapping[str, Check], before: Before | None = None) -> Compact:
    """All results in one."""
    kept = Compact(checks, before)
    for result in results:
        kept.add(result)
    return kept


def seen(found: Finding) -> str:
    """What was observed, and how many of how many siblings it concerns."""
    if found.odd and len(found.odd) < found.siblings:
        return f"{found.observed} (odd: {len(found.odd)} of {found.siblings})"
    if found.subjects and found.siblings == len(found.subjects) > 1:
        return f"all {found.siblings}: {found.observed}"
    return found.observed
