"""The data of the HTML page in compact form: each text and finding appears once, and hosts refer to it by number."""

import time
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from nodetune import __version__
from nodetune.api.device import Device
from nodetune.api.model import COSTS, SEVERITIES, Check, Finding, HostResult, disruption_name
from nodetune.audit import explain
from nodetune.audit.summary import parts_of, seen
from nodetune.foundation import text as plain_text
from nodetune.report import sections
from nodetune.report.html.previous import FindingChange, PreviousAudit
from nodetune.report.sections import finding_line

TOLD = ("fail", "unknown", "waived")
"""The findings that the page shows in full. Of the others it only has that they passed or why they do not apply."""


class ValueTable:
    """Numbers for values: the same value, the same number."""

    def __init__(self) -> None:
        self.known: dict[Any, int] = {}

    def number(self, value: Hashable) -> int:
        return self.known.setdefault(value, len(self.known))

    def values(self) -> list[Any]:
        return list(self.known)


class Compact:
    """Collects results one by one and keeps what the page shows."""

    def __init__(self, checks: Mapping[str, Check], before: PreviousAudit | None = None) -> None:
        self._checks, self._before = checks, before
        self._ids, self._texts, self._findings, self._judged, self._skipped = (ValueTable() for _ in range(5))
        self._devices = ValueTable()
        self._titles: dict[str, str] = {}
        self._manual: dict[str, str] = {}
        self._parts: dict[str, dict[str, None]] = {}
        self._hosts: list[list[Any]] = []
        self._acting: dict[tuple[Any, ...], sections.Member] = {}

    def add(self, result: HostResult) -> None:
        """Add one host."""
        text = self._texts.number
        parts = parts_of(result.findings)
        told = [
            self._told(result, found, len(parts.get(found.check, ())))
            for found in result.findings
            if found.status in TOLD and not found.part_of
        ]
        for check, its in parts.items():
            self._parts.setdefault(check, {}).update(dict.fromkeys(its))
        judged = tuple([self._ids.number(found.check) for found in result.findings])
        skipped = tuple(
            [(self._ids.number(each.check), text(each.reason)) for each in result.findings if each.status == "skip"]
        )
        profile = f"{result.profile} ({result.profile_reason})" if result.profile_reason else result.profile
        row = [
            plain_text.plain(result.host),
            text(result.state),
            text(plain_text.plain(result.message, 1000)),
            text(plain_text.plain(profile)),
            self._judged.number(judged),
            self._skipped.number(skipped),
            told,
            [self._devices.number(_names(each)) for each in result.devices],
        ]
        self._hosts.append([*row, *self._changed(result)])

    def _told(self, result: HostResult, found: Finding, parts: int) -> int:
        text = self._texts.number
        self._titles.setdefault(found.check, found.title)
        if found.manual:  # an unknown finding, which may be the first of its check, has none
            self._manual.setdefault(found.check, found.manual)
        fix = (
            f"{plain_text.plain(found.fix.target)} = {plain_text.setting(found.fix.value, found.fix.unit)}"
            if found.fix
            else ""
        )
        section = sections.section_of(found)
        line = finding_line.FindingLine("", sections.short_reason(found.reason))
        if found.status == "fail":
            line = finding_line.line(found, result.devices)
        if found.status == "fail" and not sections.is_lesser(found):  # one of each kind is enough for the command
            kind = section, found.fix and found.fix.disruption, result.profile_reason
            self._acting.setdefault(kind, (result, found))
        return self._findings.number(
            (
                self._ids.number(found.check),
                TOLD.index(found.status),
                SEVERITIES.index(found.severity),
                text(seen(result, found)),
                text(found.wanted),
                text(found.reason),
                text(fix),
                text(disruption_name(found.fix.disruption) if found.fix else ""),
                int(found.gates),
                COSTS.index(found.cost),
                sections.NAMES.index(section),
                text(line.subject),
                text(line.text),
                parts,
            )
        )

    def _changed(self, result: HostResult) -> list[Any]:
        """Return [new checks, [gone check, current status] …, added], or nothing if nothing changed."""
        change = self._before.change(result) if self._before else FindingChange()
        if change == FindingChange():
            return []
        number = self._ids.number
        return [[[*map(number, change.new)], [[number(each), now] for each, now in change.gone], int(change.added)]]

    def title(self) -> str:
        """Return the title of the page."""
        return str(self._hosts[0][0]) if len(self._hosts) == 1 else f"{len(self._hosts)} hosts"

    def document(self, commands: sections.CommandOptions, now: float | None = None, judged: str = "") -> dict[str, Any]:
        """Return everything as JSON data. `judged`: options for commands that explain a check."""
        names = self._ids.values()
        before = self._before
        return {
            "page": 1,
            "nodetune": __version__,
            "time": int(time.time() if now is None else now),
            "asked": plain_text.plain(commands.asked),
            "explaining": judged,
            "since": {"time": before.time, "lost": sorted(before.hosts.keys() - {host[0] for host in self._hosts})}
            if before
            else None,
            "sections": [self._section(name, commands) for name in sections.NAMES],
            "checks": [self._check(name) for name in names],
            "texts": self._texts.values(),
            "findings": self._findings.values(),
            "judged": self._judged.values(),
            "skipped": self._skipped.values(),
            "devices": self._devices.values(),
            "hosts": self._hosts,
        }

    def _section(self, name: str, commands: sections.CommandOptions) -> list[str]:
        """Return [name, title, command]."""
        members = (each for (its, *_), each in self._acting.items() if its == name)
        return [name, sections.TITLES[name].capitalize(), plain_text.plain(commands.of(name, members), 1000)]

    def _check(self, name: str) -> dict[str, Any]:
        """Return the explanation of a check; only its id and title if it failed nowhere."""
        check = self._checks.get(name)
        told: dict[str, Any] = {"id": name, "area": check.area if check and check.area else "site"}
        told["title"] = self._titles.get(name) or (check.title if check else name)
        if name in self._titles and check:
            told |= {"fix": explain.fix(check), "taught": explain.explain(check).sections}
        told |= {"manual": self._manual[name]} if self._manual.get(name) else {}
        return told | ({"parts": [*self._parts[name]]} if name in self._parts else {})


def _names(device: Device) -> tuple[str, ...]:
    """Return [name, address, UUID, serial number, link] without what is empty at the end."""
    names = [device.name, device.address, device.uuid, device.serial, device.netdev]
    while not names[-1]:
        names.pop()
    return tuple(names)


def compact(results: Iterable[HostResult], checks: Mapping[str, Check], before: PreviousAudit | None = None) -> Compact:
    """Collect all results."""
    kept = Compact(checks, before)
    for result in results:
        kept.add(result)
    return kept
