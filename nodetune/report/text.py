"""The audit for people at a terminal: worst first, hosts folded, each finding with what to type next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console
from rich.text import Text

from nodetune import fleet, nodeset, show
from nodetune.model import SEVERITIES, Finding, HostResult
from nodetune.outcome import Summary, summarise

STYLE = {"critical": "bold white on red", "high": "bold red", "medium": "yellow", "low": "cyan", "info": "dim"}
MOST_VARIANTS = 6
GUTTER = " " * 10


@dataclass(frozen=True)
class Group:
    """One failing check over the hosts that fail it."""

    check: str
    severity: str
    title: str
    members: tuple[tuple[str, Finding], ...]

    @property
    def hosts(self) -> list[str]:
        return [host for host, _ in self.members]


def grouped(results: Iterable[HostResult], status: str = "fail") -> list[Group]:
    """Findings of one status by check: worst severity first, then those on most hosts."""
    by_check: dict[tuple[str, str], list[tuple[str, Finding]]] = {}
    for result in results:
        for found in result.findings:
            if found.status == status:
                by_check.setdefault((found.check, found.severity), []).append((result.host, found))
    groups = [
        Group(check, severity, members[0][1].title, tuple(members)) for (check, severity), members in by_check.items()
    ]
    return sorted(groups, key=lambda group: (-SEVERITIES.index(group.severity), -len(group.members), group.check))


class Lines:
    """Writes lines of styled parts, each wrapped under its own indent."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def line(self, *parts: tuple[str, str] | str, indent: str = "") -> None:
        """One logical line. A part is a text, or a text with its style."""
        line = Text()
        for part in parts:
            text, style = (part, "") if isinstance(part, str) else part
            line.append(text, style)
        for wrapped in line.wrap(self._console, max(40, self._console.width - len(indent) - 1)):
            wrapped.rstrip()
            self._console.print(Text(indent).append_text(wrapped), soft_wrap=True)

    def whole(self, *parts: tuple[str, str], indent: str = "") -> None:
        """One line that is never broken."""
        line = Text(indent)
        for text, style in parts:
            line.append(text, style)
        self._console.print(line, soft_wrap=True)


class Printer:
    """Prints one audit to a console."""

    def __init__(self, console: Console, results: Sequence[HostResult], asked: str = "") -> None:
        self._line, self._whole = Lines(console).line, Lines(console).whole
        self._results = results
        self._asked = asked
        self._single = len(results) == 1

    def audit(self, by_host: bool = False) -> None:
        """The whole report."""
        self._heading()
        if by_host:
            self._by_host()
        else:
            for group in grouped(self._results):
                if not fleet.is_fleet(group.check):
                    self._group(group)
        self._fleet(by_host)
        self._waived()
        self._unknown()
        self._unreached()
        self._summary()

    def _heading(self) -> None:
        profiles: dict[tuple[str, str], list[str]] = {}
        for result in self._results:
            if result.state == "ok":
                profiles.setdefault((result.profile, result.profile_reason), []).append(result.host)
        for (name, reason), hosts in profiles.items():
            because = f" ({show.plain(reason)})" if reason else ""
            self._line((fold(hosts), "bold"), f"  profile {name}{because}")
        self._line("")

    def _group(self, group: Group) -> None:
        head: list[tuple[str, str] | str] = [
            (f"{group.severity:<8}", STYLE[group.severity]),
            "  ",
            (group.check, "bold"),
        ]
        if not self._single:
            head.append(f"  {fold(group.hosts)}")
        self._line(*head)
        self._line(group.title, indent=GUTTER)
        variants: dict[tuple[str, str, str], list[str]] = {}
        for host, found in group.members:
            variants.setdefault((_seen(found), found.wanted, found.reason), []).append(host)
        ordered = sorted(variants.items(), key=lambda item: -len(item[1]))
        reasons = {reason for _, _, reason in variants}
        for (seen, wanted, reason), hosts in ordered[:MOST_VARIANTS]:
            self._variant(seen, wanted, reason if len(reasons) > 1 else "", hosts if len(variants) > 1 else [])
        if len(ordered) > MOST_VARIANTS:
            rest = [host for _, hosts in ordered[MOST_VARIANTS:] for host in hosts]
            self._line((f"… and {len(ordered) - MOST_VARIANTS} other values on {fold(rest)}", "dim"), indent=GUTTER)
        if len(reasons) == 1 and (reason := reasons.pop()):
            self._line(reason, indent=GUTTER)
        self._next(group)
        self._line("")

    def _variant(self, seen: str, wanted: str, reason: str, hosts: list[str]) -> None:
        parts: list[tuple[str, str] | str] = [("observed ", "dim"), seen]
        if wanted:
            parts += [("   wanted ", "dim"), wanted]
        if hosts:
            parts = [(f"{fold(hosts)}: ", "bold"), *parts]
        self._line(*parts, indent=GUTTER)
        if reason:
            self._line(reason, indent=GUTTER)

    def _fleet(self, by_host: bool) -> None:
        """What the comparison of the hosts found: who was compared within what, then what differs."""
        compared = fleet_groups(self._results)
        if not compared:
            return
        self._line(("between hosts", "bold"))
        few = [host for hosts, comparisons, _ in compared.values() if not comparisons for host in hosts]
        for name, (hosts, comparisons, agreed) in compared.items():
            if comparisons:
                alike = f"alike in {agreed} of {count(comparisons, 'comparison')}"
                self._line((name, "bold"), f"  {count(len(hosts), 'host')} {fold(hosts, 60)}: {alike}", indent="  ")
        if few:
            told = (
                "too few of a kind to tell who is odd: --reference HOST compares with one, --group-by groups otherwise"
            )
            self._line((f"{count(len(few), 'host')}", "bold"), f" {fold(few, 60)}: {told}", indent="  ")
        self._line("")
        for group in () if by_host else grouped(self._results):
            if fleet.is_fleet(group.check):
                self._group(group)

    def _next(self, group: Group) -> None:
        found = group.members[0][1]
        if fleet.is_fleet(group.check):
            self._line(("by hand  ", "dim"), found.manual, indent=GUTTER)
            self._whole(("confirm  ", "dim"), (fleet.every()[group.check].confirm, "green"), indent=GUTTER)
            return
        if found.fix:
            cost = "no disruption" if found.fix.disruption == "none" else f"disruption: {found.fix.disruption}"
            values = {show.value(each.fix.value, each.fix.unit) for _, each in group.members if each.fix}
            value = values.pop() if len(values) == 1 else "a value computed for each host"
            self._line(("fix      ", "dim"), f"{show.plain(found.fix.target)} = {value} ({cost})", indent=GUTTER)
            self._type(self._command("plan", f"-s {found.check}"))
            return
        if found.manual:
            self._line(("by hand  ", "dim"), found.manual.strip(), indent=GUTTER)
        self._type(f"nodetune explain {found.check}")

    def _type(self, command: str) -> None:
        """What to type next, on one line however narrow the screen: it is there to be copied."""
        self._whole(("next     ", "dim"), (command, "green"), indent=GUTTER)

    def _command(self, verb: str, more: str = "") -> str:
        return " ".join(part for part in ("nodetune", verb, self._asked, more) if part)

    def _by_host(self) -> None:
        for result in sorted(self._results, key=lambda one: one.host):
            if result.state != "ok":
                continue
            failing = sorted(result.failing(), key=lambda found: -SEVERITIES.index(found.severity))
            self._line(
                (show.plain(result.host), "bold underline"), f"  {len(failing)} findings" if failing else "  compliant"
            )
            for found in failing:
                reason = f" ({found.reason})" if found.reason else ""
                wanted = f", wanted {found.wanted}" if found.wanted else ""
                self._line(
                    (f"{found.severity:<8}", STYLE[found.severity]),
                    f"  {found.check}: {_seen(found)}{wanted}{reason}",
                    indent="  ",
                )
            self._line("")

    def _waived(self) -> None:
        for group in grouped(self._results, "waived"):
            self._line(
                ("waived  ", "dim"),
                "  ",
                (group.check, "bold"),
                f"  {fold(group.hosts)}: {group.members[0][1].reason}",
            )

    def _unknown(self) -> None:
        reasons: dict[str, tuple[set[str], set[str]]] = {}
        for result in self._results:
            for found in result.findings:
                if found.status == "unknown":
                    ids, hosts = reasons.setdefault(_short(found.reason), (set(), set()))
                    ids.add(found.check)
                    hosts.add(result.host)
        for reason, (ids, hosts) in sorted(reasons.items(), key=lambda item: -len(item[1][0])):
            where = "" if self._single else f"  {fold(hosts)}"
            self._line(("unknown ", "magenta"), f"  {count(len(ids), 'check')}{where}: {reason}")
            self._line((_some(sorted(ids)), "dim"), indent=GUTTER)

    def _unreached(self) -> None:
        states: dict[tuple[str, str], list[str]] = {}
        for result in self._results:
            if result.state != "ok":
                message = result.message.removeprefix(f"{result.host}: ").replace(result.host, "the host")
                states.setdefault((result.state, message), []).append(result.host)
        by_state: dict[str, list[tuple[str, list[str]]]] = {}
        for (state, message), hosts in states.items():
            by_state.setdefault(state, []).append((message, hosts))
        for state, messages in by_state.items():
            everyone = [host for _, hosts in messages for host in hosts]
            self._line((state, "bold magenta"), f"  {fold(everyone)}")
            for message, hosts in messages[:MOST_VARIANTS]:
                self._line(f"{fold(hosts)}: " if len(messages) > 1 else "", show.plain(message), indent=GUTTER)

    def _summary(self) -> None:
        summary = summarise(self._results)
        self._line("")
        self._line(*_totals(summary))
        if any(not fleet.is_fleet(found.check) for result in self._results for found in result.failing()):
            self._line(
                ("all fixes: ", "dim"),
                (self._command("plan"), "green"),
                ("   why: ", "dim"),
                ("nodetune explain ID", "green"),
            )


def _totals(summary: Summary) -> list[tuple[str, str] | str]:
    parts: list[tuple[str, str] | str] = [(f"{count(summary.reached, 'host')} audited", "bold")]
    if summary.reached < summary.hosts:
        parts.append((f", {summary.hosts - summary.reached} not reached", "bold magenta"))
    parts.append(": ")
    failing = [
        (f"{summary.failing[each]} {each}", STYLE[each]) for each in reversed(SEVERITIES) if summary.failing.get(each)
    ]
    for number, part in enumerate(failing):
        parts += [", ", part] if number else [part]
    parts.append(" findings" if failing else "no findings")
    rest = [
        f"{summary.statuses[each]} {word}"
        for each, word in (("pass", "passed"), ("skip", "not applicable"), ("unknown", "unknown"), ("waived", "waived"))
        if summary.statuses.get(each)
    ]
    return [*parts, f" · {' · '.join(rest)}"] if rest else parts


def fleet_groups(results: Iterable[HostResult]) -> dict[str, tuple[list[str], int, int]]:
    """Group → its hosts, by how many comparisons they were held against each other, and in how many of these all agree."""
    hosts: dict[str, list[str]] = {}
    judged: dict[str, set[str]] = {}
    differing: dict[str, set[str]] = {}
    for result in results:
        mine = [found for found in result.findings if isinstance(found, fleet.FleetFinding)]
        if mine:
            hosts.setdefault(mine[0].group, []).append(result.host)
        for found in mine:
            if found.compared:
                judged.setdefault(found.group, set()).add(found.check)
            if found.status in ("fail", "waived"):
                differing.setdefault(found.group, set()).add(found.check)
    return {
        name: (hosts[name], len(judged.get(name, ())), len(judged.get(name, set()) - differing.get(name, set())))
        for name in sorted(hosts, key=lambda each: (-len(hosts[each]), each))
    }


def _seen(found: Finding) -> str:
    if found.odd and len(found.odd) < found.siblings:
        named = "" if set(found.odd) == set(found.subjects) else f": {show.names(list(found.odd))}"
        return f"{found.observed} (odd {'one' if len(found.odd) == 1 else len(found.odd)} of {found.siblings}{named})"
    if found.subjects and found.siblings == len(found.subjects) > 1:
        return f"all {found.siblings}: {found.observed}"
    return found.observed


def _short(reason: str) -> str:
    """A reason without the fact or file that it begins with, so that equal causes fold."""
    for cause in ("permission denied: needs root (--become)",):
        if cause in reason:
            return cause
    return reason


def fold(hosts: Iterable[str], longest: int = 160) -> str:
    text = show.plain(nodeset.fold(hosts), 4000)
    return text if len(text) <= longest else f"{text[:longest].rpartition(',')[0]},…"


def count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _some(names: list[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def console(stream: TextIO) -> Console:
    """A console: colour only on terminals, NO_COLOR respected; nothing in a text is ever taken for markup."""
    return Console(file=stream, highlight=False, markup=False, emoji=False)
