"""The audit for people at a terminal: sections by who acts, one line a cause, one command a section."""

import datetime
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TextIO

from rich.cells import cell_len

from nodetune.api.model import SEVERITIES, HostResult
from nodetune.audit.summary import fleet_groups, table_age
from nodetune.foundation import by_key, text
from nodetune.report import sections
from nodetune.report.sections import (
    BROKEN,
    DRAINED,
    FEW,
    HAND,
    NOW,
    UNKNOWN,
    AuditReport,
    CauseLine,
    CommandOptions,
    Section,
    Worst,
)
from nodetune.report.text.lines import STYLE, Lines, Part, breaks, screen

MAX_LINES = {BROKEN: 16, NOW: 10, DRAINED: 8, HAND: 14, UNKNOWN: 5}
"""Rows of each section for more than a few hosts: ten thousand hosts fit a screen of a hundred rows."""

MAX_REASONS = 6
WITH_CHECKS = 100
"""The width from which a row ends with its check."""

WIDEST = {"where": 24, "subject": 24, "check": 36}
NARROW = 18
"""The widest subject where rows have no check."""

SEVERITY = 10
INDENT = "  "
MIN_WIDTH = 16
"""The narrowest rest of a row that takes a part of the text."""

WORDS = {"pass": "passed", "skip": "do not apply", "unknown": "unknown", "waived": "waived"}


def write(
    results: Sequence[HostResult],
    stream: TextIO,
    commands: CommandOptions | None = None,
    today: Callable[[], datetime.date] = datetime.date.today,
) -> None:
    """Print the report. `commands` has the options for proposed commands."""
    asked = commands or CommandOptions()
    Printer(Lines(screen(stream)), results, sections.build(results, asked), asked).report(today())


class Printer:
    """Prints one report. Its columns are as wide in all sections."""

    def __init__(
        self, out: Lines, results: Sequence[HostResult], report: AuditReport, commands: CommandOptions
    ) -> None:
        self._out, self._results, self._report, self._commands = out, results, report, commands
        self._hosts = len(results)
        self._columns = Columns(
            out, [line for section in report.sections for line in self._shown(section)], self._hosts
        )

    def report(self, today: datetime.date) -> None:
        self.head()
        for section in self._report.sections:
            self._section(section)
        self.end(today)

    def head(self) -> None:
        """Print which hosts were judged how, and the totals."""
        print_judged(self._out, self._results)
        self._out.joined(self._found(), self._counted())
        for name, (hosts, comparisons, agreed) in list(fleet_groups(self._results).items())[:MAX_REASONS]:
            if comparisons:
                alike = f"identical in {agreed} of {text.count(comparisons, 'comparison')}"
                self._out.line((f"{text.count(len(hosts), 'host')} compared, {name}: {alike}", "dim"))

    def _found(self) -> list[Part]:
        """Return the counts of what was found."""
        summary = self._report.summary
        parts: list[Part] = []
        if self._hosts > 1 or not summary.reached:
            lost = summary.hosts - summary.reached
            parts = [(f"{text.count(summary.reached, 'host')} audited", "bold")]
            parts += [(f", {lost} not reached", "bold magenta")] if lost else []
            if not summary.reached:
                return parts
            parts += [f", {self._report.compliant} compliant: "]
        if not self._report.findings:
            return [*parts, ("no findings", "green")]
        parts += [(_counted(self._report.findings, "finding"), "bold"), ": "]
        severe = (each for each in reversed(SEVERITIES) if summary.failing.get(each))
        told = [(f"{summary.failing[each]:,} {each}", STYLE[each]) for each in severe]
        return [*parts, *(part for each in told for part in (each, ", "))][:-1]

    def _counted(self) -> str:
        """Return the counts of everything else."""
        statuses = self._report.summary.statuses
        told = [f"{statuses[each]:,} {word}" for each, word in WORDS.items() if statuses.get(each)]
        told += [f"{_counted(self._report.parts, 'consequence')} (+)"] if self._report.parts else []
        return ", ".join(told) if self._report.summary.reached else ""

    def _section(self, section: Section) -> None:
        counted = _counted(section.findings, "check" if section.name == UNKNOWN else "finding")
        self._title(f"{self._named(section)} ({counted})")
        shown = self._shown(section)
        for line in shown:
            self._columns.row(line, 1 if self._hosts > FEW or (self._hosts > 1 and section.name != BROKEN) else 2)
        if left := len(section.lines) - len(shown):
            self._out.line((f"… and {text.count(left, 'more cause')}", "dim"), indent=INDENT)
        self._to_do(section.command)

    def _shown(self, section: Section) -> Sequence[CauseLine]:
        most = MAX_LINES[section.name] if self._hosts > FEW else len(section.lines)
        return section.lines if len(section.lines) <= most else section.lines[: most - 1]

    def _named(self, section: Section) -> str:
        if self._hosts == 1 or section.name != BROKEN:
            return section.title
        return section.title.replace("it", text.count(len(section.hosts), "host"), 1)

    def _title(self, title: str) -> None:
        self._out.gap()
        self._out.line((title, "bold"))

    def _to_do(self, command: str) -> None:
        """Print a command on one line, even on a narrow screen, so that it can be copied."""
        self._out.whole((f"{'to do':<{SEVERITY}}", "dim"), (command, "green"), indent=INDENT)

    def _not_reached(self) -> None:
        """Print one line for each reason why hosts were not reached."""
        failed = [(each.state, each.host, each.message) for each in self._results if each.state != "ok"]
        if not failed:
            return
        from nodetune.report.text.host_names import unreached

        self._title(f"NOT REACHED: {len(failed)} of {text.count(self._hosts, 'host')}")
        unreached(self._out, failed, self._commands.audit(), indent=INDENT)

    def _worst(self, hosts: Sequence[Worst]) -> None:
        if not hosts:
            return
        self._title("WORST HOSTS")
        width = max(len(text.plain(each.host)) for each in hosts)
        for each in hosts:
            counted = ", ".join(f"{each.failing[name]} {name}" for name in sections.GRAVE if each.failing.get(name))
            named, room = f"{text.plain(each.host):<{width}}", self._out.room() - width - 27
            self._out.whole((named, "bold"), f"  {counted:<20}  {cut(', '.join(each.checks), room)}", indent=INDENT)

    def end(self, today: datetime.date) -> None:
        """Print the hosts that were not reached, the worst hosts, and what to do next."""
        self._not_reached()
        self._worst(self._report.worst)
        if self._report.lesser:
            self._out.gap()
            self._out.whole(f"{self._report.lesser:,} low and info: ", (self._report.full, "green"))
        if told := table_age(self._results, today):
            self._out.line((told, "dim"))
        if (
            not self._report.sections
            and not self._report.lesser
            and self._report.compliant
            and not self._commands.saved
        ):
            self._out.whole(("next  ", "dim"), (self._commands.verify(), "green"))


def _counted(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def _profile(result: HostResult) -> str:
    reason = result.profile_reason.removeprefix(f"{result.profile}: ")
    because = f" ({text.plain(reason)})" if reason else ""
    return f"profile {text.plain(result.profile)}{because}"


def print_judged(out: Lines, results: Sequence[HostResult]) -> None:
    """Print how which hosts were judged, and the age of their facts."""
    ok = [result for result in results if result.state == "ok"]
    if len(results) == 1 and ok:
        told = f"{ok[0].machine}, " if ok[0].machine else ""
        out.joined([(text.plain(ok[0].host), "bold"), f"  {told}{_profile(ok[0])}"], ok[0].message)
        return
    from nodetune.report.text.host_names import aged, named  # one host needs no more than its name

    for told, hosts in list(by_key((_profile(each), each.host) for each in ok).items())[:MAX_REASONS]:
        out.line((named(hosts, 48), "bold"), f"  {told}", hang=" " * 8)
    for message, hosts in list(aged(results).items())[:MAX_REASONS]:
        where = "all hosts" if len(hosts) == len(ok) else named(hosts)
        out.line((message, "yellow"), f": {where}")


class Columns:
    """Prints lines under each other. A text that does not fit has a second row, and is cut there."""

    def __init__(self, out: Lines, lines: Sequence[CauseLine], hosts: int) -> None:
        self._out, self._hosts = out, hosts
        wide = out.room() + 1 >= WITH_CHECKS
        self._where = _width((self._named(line) for line in lines), WIDEST["where"])
        subject = 0 if hosts > 1 else WIDEST["subject"] if wide else NARROW
        self._subject = _width((line.subject for line in lines), subject)
        self._check = _width(map(_check, lines), WIDEST["check"]) if wide else 0
        self._text = _width(
            (f"{line.subject[self._subject :]}  {line.text}{_since(line)}" for line in lines), out.room()
        )

    def row(self, line: CauseLine, rows: int = 99) -> None:
        """Print one cause. `rows` is the maximum number of rows."""
        head: list[Part] = [INDENT, (f"{line.severity:<{SEVERITY}}", STYLE.get(line.severity, "magenta"))]
        if self._where:
            head.append(f"{_padded(self._named(line), self._where)}  ")
        head.append((f"{_padded(line.subject, self._subject)}  ", "bold"))
        used = sum(cell_len(each if isinstance(each, str) else each[0]) for each in head)
        column = len(INDENT) + SEVERITY + sum(width + 2 for width in (self._where, self._subject) if width)
        end = min(self._out.room() - (self._check + 2 if self._check else 0), column + self._text)
        told, check = self._told(line, end - used), _check(line) if self._check else ""
        first, *more = _wrapped(told, end - used, end - column, rows)
        tail: list[Part] = [(f"{' ' * (end - used - cell_len(first) + 2)}{check}", "dim")] if check else []
        self._out.whole(*head, first, *tail)
        for row in more:
            self._out.whole(row, indent=" " * column)

    def _told(self, line: CauseLine, room: int) -> str:
        """Return the text of a line, in fewer words if it is long."""
        more = f"; other values on {text.count(line.others, 'host')}" if line.others else ""
        more += _since(line)
        if not self._check and line.parts and line.severity != UNKNOWN:
            more += f" (+{len(line.parts)})"
        return (line.text if cell_len(line.text + more) <= room else line.short) + more

    def _named(self, line: CauseLine) -> str:
        """Return the hosts of a line: all by name if that is short, else counted."""
        if self._hosts == 1:
            return ""
        if len(line.hosts) == self._hosts:
            return f"all {self._hosts} hosts"
        from nodetune.report.text.host_names import fold

        names = fold(line.hosts, WIDEST["where"])
        if len(names) <= WIDEST["where"] and "…" not in names:
            return names
        few = f"{fold(line.hosts[:1])} +{len(line.hosts) - 1}"
        return (
            few if self._hosts <= FEW and len(few) <= WIDEST["where"] else f"{len(line.hosts)} of {self._hosts} hosts"
        )


def _wrapped(told: str, first: int, width: int, most: int) -> list[str]:
    """Return the rows of a text. No address, command or number is parted; the last row may be cut."""
    if first < min(MIN_WIDTH, cell_len(told)):
        return ["", cut(told, width)]
    places = [0, *breaks(told, first, width), len(told)]
    rows = [told[here:there].rstrip() for here, there in pairwise(places)]
    if len(rows) <= most:
        return rows
    last = cut(" ".join(rows[most - 1 :]), first if most == 1 else width)
    return [*rows[: most - 1], last]


def cut(told: str, room: int) -> str:
    """Return as many words as fit."""
    if cell_len(told) <= room:
        return told
    end = next(iter(breaks(told, max(room - 2, 1), room)), len(told))
    return f"{told[:end].rstrip()} …"


def _since(line: CauseLine) -> str:
    return "" if line.since is None else f"; since {text.day(line.since)}"


def _check(line: CauseLine) -> str:
    if line.severity == UNKNOWN and line.parts:
        return ""
    return f"{line.check} +{len(line.parts)}" if line.parts else line.check


def _width(texts: Iterable[str], widest: int) -> int:
    return min(max(map(cell_len, texts), default=0), widest)


def _padded(told: str, width: int) -> str:
    return told + " " * (width - cell_len(told))
