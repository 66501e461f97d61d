"""The full audit for people at a terminal: worst first, hosts folded, each finding with its next command."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Sequence
from typing import TextIO

from rich.console import Console

from nodetune.api.model import FleetFinding, HostResult, disruption_name
from nodetune.audit import explain
from nodetune.audit.summary import compliant, fleet_groups, parts_of, seen, skipped, summarise, table_age, totals
from nodetune.foundation import by_key, text
from nodetune.report.sections import short_reason
from nodetune.report.text.finding_groups import FindingGroup, grouped
from nodetune.report.text.host_names import CUT, FEW, MAX_REASONS, WHOLE, fold, judged_by, named, unreached
from nodetune.report.text.lines import STYLE, Lines, console, some

MAX_VARIANTS = 6
MAX_WHOLE = 3
"""Up to this many findings, all their hosts are named."""

MAX_FULL = 10
"""Above this many findings on more than a few hosts, each is shown in short form; the next commands are elsewhere."""

SHORT_VARIANTS = {"critical": 3, "high": 3}
"""Number of values in short form; one for other severities."""

LESSER = ("low", "info")
"""In short form, these take one line each."""

GUTTER = " " * 10
NARROWEST = 30
"""The narrowest rest of a line that can take a list of hosts."""


def write(
    results: Sequence[HostResult],
    stream: TextIO,
    asked: str = "",
    by_host: bool = False,
    selected: str = "",
    judged: str | None = None,
) -> None:
    """Print the report by finding or by host.

    `asked` and `selected` are options for proposed commands; `judged` those for `explain` where `asked` would log in.
    """
    Printer(console(stream), results, asked, selected, judged=judged).audit(by_host)


class Printer:
    """Prints one audit to a console."""

    def __init__(
        self,
        console: Console,
        results: Sequence[HostResult],
        asked: str = "",
        selected: str = "",
        today: Callable[[], datetime.date] = datetime.date.today,
        judged: str | None = None,
    ) -> None:
        self._out = Lines(console)
        self._judged = asked if judged is None else judged
        self._line, self._whole = self._out.line, self._out.whole
        self._results = results
        self._asked, self._selected, self._today = asked, selected, today
        self._single = len(results) == 1
        self._groups = grouped(results)
        self._parts = parts_of(found for result in results for found in result.findings)
        self._brief = len(results) > FEW and len(self._groups) > MAX_FULL
        self._cut = self._brief
        self._last: set[str] = set()

    def audit(self, by_host: bool = False) -> None:
        """Print the whole report."""
        judged_by(self._out, self._results)
        if by_host:
            self._by_host()
            self._compared()
        else:
            worse = [group for group in self._groups if not (self._brief and group.severity in LESSER)]
            self._each(group for group in worse if not group.of_fleet)
            self._compared()
            self._each(group for group in worse if group.of_fleet)
            self._lesser()
        self._waived()
        self._unknown()
        self._skipped()
        lost = [(each.state, each.host, each.message) for each in self._results if each.state != "ok"]
        unreached(self._out, lost, self._command("audit", self._selected))
        self._summary()

    def _each(self, groups: Iterable[FindingGroup]) -> None:
        for group in groups:
            self._group(group)

    def _group(self, group: FindingGroup) -> None:
        self._head(group)
        self._line(", ".join(filter(None, (group.title, group.since))), indent=GUTTER)
        self._values(group)
        if not self._brief:
            self._next(group)
        elif group.severity in SHORT_VARIANTS:
            self._next_in_short(group)
        self._line("")

    def _values(self, group: FindingGroup) -> None:
        """Print the observed values with their hosts, the most common first."""
        variants = by_key(
            ((seen(result, found), found.wanted, found.reason), result.host) for result, found in group.members
        )
        ordered = sorted(variants.items(), key=lambda item: -len(item[1]))
        reasons = {reason for _, _, reason in variants}
        most = SHORT_VARIANTS.get(group.severity, 1) if self._brief else MAX_VARIANTS
        for (observed, wanted, reason), hosts in ordered[:most]:
            where = self._share(hosts, len(group.members)) if len(variants) > 1 else ""
            self._variant(observed, wanted, reason if len(reasons) > 1 else "", where)
        if left := ordered[most:]:
            where = self._share([host for _, hosts in left for host in hosts], len(group.members))
            self._line((f"… and {text.count(len(left), 'other value')} on {where}", "dim"), indent=GUTTER)
        if len(reasons) == 1 and (reason := reasons.pop()):
            self._line(reason, indent=GUTTER)

    def _head(self, group: FindingGroup) -> None:
        """Print the fault, its severity and its hosts: on the same line if they fit, else below it."""
        head = (f"{group.severity:<8}", STYLE[group.severity]), "  ", (group.check, "bold")
        if self._single:
            self._line(*head)
            return
        room = self._out.room() - len(GUTTER) - len(group.check) - 2
        every = len(self._groups) <= MAX_WHOLE
        where = self._where(group.hosts, WHOLE if every else self._out.room(GUTTER))
        if len(where) > room >= NARROWEST and not every:
            where = self._where(group.hosts, room)
        if len(where) <= room:
            self._line(*head, f"  {where}")
        else:
            self._line(*head)
            self._line(where, indent=GUTTER)
        self._last = set(group.hosts)

    def _where(self, hosts: list[str], longest: int) -> str:
        """Return the hosts, or a reference if they are the same as for the finding above."""
        if len(hosts) > FEW and set(hosts) == self._last:
            return f"the same {len(hosts)} hosts"
        where = named(hosts, longest)
        self._cut |= CUT in where
        return where

    def _share(self, hosts: list[str], among: int) -> str:
        """Return the hosts of a finding, or only their number if they are most of many hosts or the report is brief."""
        if len(hosts) > FEW and len(hosts) * 2 > among:
            return f"{len(hosts)} of {among} hosts"
        return f"{len(hosts)} hosts" if len(hosts) > FEW and self._brief else named(hosts, 60)

    def _lesser(self) -> None:
        """Print the less severe findings, one line each."""
        if self._brief and (groups := [group for group in self._groups if group.severity in LESSER]):
            for group in groups:
                self._head(group)
            self._line("")

    def _variant(self, observed: str, wanted: str, reason: str, where: str) -> None:
        parts: list[tuple[str, str] | str] = [(f"{where}: ", "bold")] if where else []
        parts += [("observed ", "dim"), observed]
        label = ("   wanted ", "dim")
        if wanted and not self._out.fits(*parts, label, wanted, indent=GUTTER):
            self._line(*parts, indent=GUTTER)
            parts, label = [], ("wanted   ", "dim")
        self._line(*parts, *((label, wanted) if wanted else ()), indent=GUTTER)
        if reason:
            self._line(reason, indent=GUTTER)

    def _compared(self) -> None:
        """Print which hosts were compared in which cohorts."""
        compared = fleet_groups(self._results)
        if not compared:
            return
        self._line(("between hosts", "bold"))
        few = [host for hosts, comparisons, _ in compared.values() if not comparisons for host in hosts]
        for name, (hosts, comparisons, agreed) in compared.items():
            if comparisons:
                alike = f"identical in {agreed} of {text.count(comparisons, 'comparison')}"
                counted = f"  {text.count(len(hosts), 'host')} "
                room = self._out.room("  ") - len(f"{name}{counted}: {alike}")
                self._line((name, "bold"), f"{counted}{fold(hosts, max(room, NARROWEST))}: {alike}", indent="  ")
        if few:
            told = "too few similar hosts to find outliers: compare with one host (--reference) or select other cohorts (--cohort)"
            self._line((f"{text.count(len(few), 'host')}", "bold"), f" {fold(few, 60)}: {told}", indent="  ")
        self._line("")

    def _next(self, group: FindingGroup) -> None:
        found = group.members[0][1]
        if group.of_fleet:
            self._line(("manual   ", "dim"), found.manual, indent=GUTTER)
            self._whole(("confirm  ", "dim"), (explain.confirmed_by(group.check), "green"), indent=GUTTER)
            return
        if found.fix:
            cost = disruption_name(found.fix.disruption)
            cost = "no disruption" if cost == "none" else f"disruption: {cost}"
            values = {text.setting(each.fix.value, each.fix.unit) for _, each in group.members if each.fix}
            value = values.pop() if len(values) == 1 else "a value computed for each host"
            self._line(("fix      ", "dim"), f"{text.plain(found.fix.target)} = {value} ({cost})", indent=GUTTER)
            self._type(self._command("plan", self._named(found.check)))
            return
        if found.manual:
            self._line(("manual   ", "dim"), found.manual.strip(), indent=GUTTER)
        self._type(self._explain(found.check))

    def _next_in_short(self, group: FindingGroup) -> None:
        plan, fixable = self._command("plan", self._named(group.check)), any(found.fix for _, found in group.members)
        self._type(plan if fixable else self._explain(group.check))

    def _named(self, check: str) -> str:
        """Return the options that select a check and those that its finding also reports."""
        return " ".join(f"-s {each}" for each in (check, *self._parts.get(check, ())))

    def _type(self, command: str) -> None:
        """Print the next command on one line, even on a narrow screen, so that it can be copied."""
        self._whole(("next     ", "dim"), (command, "green"), indent=GUTTER)

    def _explain(self, check: str) -> str:
        return " ".join(part for part in ("nodetune explain", check, self._judged) if part)

    def _command(self, verb: str, more: str = "") -> str:
        return " ".join(part for part in ("nodetune", verb, self._asked, more) if part)

    def _by_host(self) -> None:
        for result in sorted(self._results, key=lambda one: one.host):
            if result.state != "ok":
                continue
            failing = sorted(result.causes(), key=lambda found: found.rank)
            told = (
                text.count(len(failing), "finding") if failing else "compliant" if compliant(result) else "no findings"
            )
            self._line((text.plain(result.host), "bold underline"), f"  {told}")
            for found in failing:
                reason = f" ({found.reason})" if found.reason else ""
                wanted = f", wanted {found.wanted}" if found.wanted else ""
                severity = (f"{found.severity:<8}", STYLE[found.severity])
                self._line(severity, f"  {found.check}: {seen(result, found)}{wanted}{reason}", indent="  ")
            self._line("")

    def _waived(self) -> None:
        for group in grouped(self._results, "waived"):
            why = f"  {named(group.hosts)}: {group.members[0][1].reason}"
            self._line(("waived  ", "dim"), "  ", (group.check, "bold"), why, hang=GUTTER)

    def _unknown(self) -> None:
        reasons: dict[str, tuple[set[str], set[str]]] = {}
        for result in self._results:
            for found in result.findings:
                if found.status == "unknown":
                    ids, hosts = reasons.setdefault(short_reason(found.reason), (set(), set()))
                    ids.add(found.check)
                    hosts.add(result.host)
        ordered = sorted(reasons.items(), key=lambda item: -len(item[1][0]))
        most = MAX_REASONS if len(self._results) > FEW else len(ordered)
        for reason, (ids, hosts) in ordered[:most]:
            where = "" if self._single else f"  {named(sorted(hosts), 60)}"
            self._line(("unknown ", "magenta"), f"  {text.count(len(ids), 'check')}{where}: {reason}")
            self._line((some(sorted(ids)), "dim"), indent=GUTTER)
        if rest := ordered[most:]:
            left = text.count(len({check for _, (ids, _) in rest for check in ids}), "check")
            told = f"  … and {text.count(len(rest), 'more reason')} ({left}): --format json lists all"
            self._line(("unknown ", "magenta"), (told, "dim"))

    def _skipped(self) -> None:
        """Print why checks do not apply if only a few were selected; otherwise they are only counted."""
        if len({found.check for result in self._results for found in result.findings}) > MAX_FULL:
            return
        for (check, reason), hosts in skipped(self._results).items():
            where = "" if self._single else f"  {named(hosts, 60)}"
            self._line(("not applicable  ", "dim"), (check, "bold"), where, f": {reason}")

    def _summary(self) -> None:
        summary = summarise(self._results)
        self._out.gap()
        self._line(*totals(summary, 0 if self._single else sum(map(compliant, self._results))))
        if any(not isinstance(found, FleetFinding) for result in self._results for found in result.failing()):
            self._out.commands(("all fixes:", self._command("plan", self._selected)), ("why:", self._explain("ID")))
        if told := table_age(self._results, self._today()):
            self._line((told, "dim"))
        if self._cut:
            self._out.commands(("details:", self._command("audit", "-s ID")), ("all:", "--format json"))
