"""A plan for people: grouped by disruption, hosts folded, with values before and after and all changed files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, TextIO

from nodetune.api.model import DISRUPTIONS, Finding, Fix, HostResult, disruption_name, fix_of
from nodetune.foundation import by_key
from nodetune.foundation import text as plain_text
from nodetune.remediation import plan as planning
from nodetune.remediation.host_changes import PlannedChange
from nodetune.remediation.host_view import FILES
from nodetune.remediation.plan import HostPlan, edited
from nodetune.report.sections import BROKEN, HAND, short_reason
from nodetune.report.text.host_names import named, unreached
from nodetune.report.text.lines import Lines, console, some

FEW_MANUAL = 3

Step = tuple[str, Finding]
"""Host and finding."""

Words = Callable[[PlannedChange], Iterable[str]]
"""The description of a planned change, equal for hosts that are alike."""


def print_plan(
    stream: TextIO,
    plans: Sequence[HostPlan],
    *,
    files: bool = False,
    ending: str = " Nothing was changed.",
    judged: str = "",
    command: str = "",
    following: str = "",
) -> None:
    """Print the plan, the manual steps, and what was not judged or not reached.

    With `files`, every file is shown in full; `ending` ends the totals; `judged` are options for proposed commands;
    `command` is the audit of the same hosts, `following` the command that carries the plan out.
    """
    out = Lines(console(stream))
    Printer(out, plans, files=files, judged=judged, command=command).plan(ending)
    if following:
        out.whole(("next     ", "dim"), (following, "green"))


def totals(plans: Sequence[HostPlan]) -> str:
    """Return the totals of the plan: its last line, also if the plan goes to a file."""
    steps = planning.steps(plans)
    doable = [host for host, _, why in steps if not why]
    cannot = {found.check for _, found, why in steps if why and not planning.is_over(why)}
    manual = len(planning.manual_steps([plan.result for plan in plans])) + len(cannot)
    lost = sum(plan.result.state != "ok" for plan in plans)
    told = f"{plain_text.count(manual, 'finding')} {'needs' if manual == 1 else 'need'} manual work"
    more = f"; {plain_text.count(lost, 'host')} not reached" if lost else ""
    unknown = len({check for check, _ in planning.unknown(plan.result for plan in plans)})
    more += f"; {plain_text.count(unknown, 'check')} unknown" if unknown else ""
    return f"{plain_text.count(len(doable), 'step')} on {plain_text.count(len(set(doable)), 'host')}; {told}{more}"


class Printer:
    def __init__(
        self, out: Lines, plans: Sequence[HostPlan], *, files: bool = False, judged: str = "", command: str = ""
    ) -> None:
        self._out, self._command = out, command
        self._plans = plans
        self._changes = {plan.host: plan.changes for plan in plans}
        self._by_host = {plan.host: plan for plan in plans}
        self._files, self._judged = files, judged

    def plan(self, ending: str) -> None:
        steps = planning.steps(self._plans)
        doable = [(host, found) for host, found, why in steps if not why]
        cannot = [step for step in steps if step[2] and not planning.is_over(step[2])]
        results = [plan.result for plan in self._plans]
        manual = planning.manual_steps(results)
        for disruption in DISRUPTIONS:
            same = [(host, found) for host, found in doable if fix_of(found).disruption == disruption]
            if same:
                self._disruption(disruption, same)
        if over := sum(planning.is_over(why) for *_, why in steps):
            told = f"{plain_text.count(over, 'step')} with more disruption: --max-disruption allows more"
            self._out.line(("left out ", "yellow"), told)
        self._cannot(cannot)
        self._manual(manual)
        self._unknown(results)
        lost = [(each.state, each.host, each.message) for each in results if each.state != "ok"]
        unreached(self._out, lost, self._command)
        self._out.line(f"{totals(self._plans)}.{ending}")

    def _disruption(self, disruption: str, steps: list[Step]) -> None:
        self._out.line((f"disruption: {disruption_name(disruption)}", "bold"))
        for check, same in groupby(steps, key=lambda step: step[1].check):
            self._check(check, list(same))
        shown = {path for host, found in steps for path in planning.kept_in(self._by_host[host], found)}
        self._each(disruption, "writes", lambda change: (path for path in paths(change.busy) if path not in shown))
        self._each(disruption, "runs", commands)
        self._each(disruption, "note", lambda change: change.notes)
        if self._files:
            self._each(disruption, "", contents)
        self._out.line("")

    def _check(self, check: str, steps: list[Step]) -> None:
        same = by_key(
            ((_target(fix_of(found)), *planning.step_words(found), self._kept(host, found), found.reason), host)
            for host, found in steps
        )
        for (target, before, after, kept, reason), hosts in same.items():
            self._out.line(self._where(hosts), (check, "bold"), f"  {target}", indent="  ")
            self._out.line(before, (" → ", "bold"), (after, "green"), (kept, "dim"), indent="      ")
            if reason:
                self._out.line((reason, "dim"), indent="      ")

    def _kept(self, host: str, found: Finding) -> str:
        """Return where a fix persists its value for the next boot, and whether it is there already."""
        files = planning.kept_in(self._by_host[host], found)
        idle = {path for change in self._changes[host] for path in paths(change.changes)}
        idle -= {path for change in self._changes[host] for path in paths(change.busy)}
        there = "already in" if files and idle.issuperset(files) else "persisted in"
        return f"   {there} {plain_text.names(files)}" if files else ""

    def _each(self, disruption: str, title: str, words: Words) -> None:
        """Print the changes of this disruption, one line for each text, with its hosts."""
        hosts_of: dict[str, list[str]] = {}
        for host, changes in self._changes.items():
            for change in changes:
                if change.disruption == disruption:
                    for text in dict.fromkeys(words(change)):
                        named = hosts_of.setdefault(text, [])
                        named.extend([] if host in named else [host])
        for text, hosts in hosts_of.items():
            if title:
                parts = (f"{title:<8}", "cyan"), self._where(hosts), plain_text.plain(text, 600)
                self._out.line(*parts, indent="  ", hang=" " * 8)
            else:
                self._whole(text, hosts)

    def _whole(self, text: str, hosts: list[str]) -> None:
        head, *lines = text.splitlines()
        self._out.line("")
        self._out.line(self._where(hosts), (plain_text.plain(head), "bold"), indent="  ")
        for line in lines:
            self._out.whole((plain_text.plain(line, 4000), ""), indent="    ")

    def _cannot(self, steps: list[tuple[str, Finding, str]]) -> None:
        for (check, why), hosts in by_key(((found.check, why), host) for host, found, why in steps).items():
            self._out.line(("unsupported  ", "yellow"), self._where(hosts), (check, "bold"))
            self._out.line(why, indent="             ")

    def _manual(self, manual: Mapping[str, tuple[Finding, list[str]]]) -> None:
        """Print manual steps; for more than a few, the commands that print them."""
        if len(manual) > FEW_MANUAL:
            repairs = sum(found.repair for found, _ in manual.values())
            for name, count in ((BROKEN, repairs), (HAND, len(manual) - repairs)):
                if count:
                    self._out.whole(
                        ("manual   ", "yellow"),
                        f"{plain_text.count(count, 'finding')}: ",
                        (
                            f"{self._command or 'nodetune audit'} --section {name}".replace("audit", "explain", 1),
                            "green",
                        ),
                    )
            return
        for check, (finding, hosts) in manual.items():
            where = "" if len(self._plans) == 1 else f"  {named(hosts)}"
            self._out.line(("manual   ", "yellow"), (check, "bold"), where)
            self._out.line(finding.manual or f"nodetune explain {check} {self._judged}".rstrip(), indent="         ")

    def _unknown(self, results: Iterable[HostResult]) -> None:
        reasons = by_key(
            (short_reason(reason), (check, host))
            for (check, reason), hosts in planning.unknown(results).items()
            for host in hosts
        )
        for reason, found in sorted(reasons.items(), key=lambda each: -len(each[1])):
            ids, hosts = (sorted(set(names)) for names in zip(*found, strict=True))
            parts = f"{plain_text.count(len(ids), 'check')}: {reason}", f"  ({some(ids)})"
            self._out.line(("unknown  ", "magenta"), self._where(hosts), parts[0], (parts[1], "dim"), hang=" " * 9)

    def _where(self, hosts: list[str]) -> str:
        return "" if len(self._plans) == 1 else f"{named(hosts)}  "


def _target(fix: Fix) -> str:
    target = plain_text.plain(fix.target)
    return f"{target} of {plain_text.names(list(fix.subjects))}" if fix.subjects else target


def paths(changes: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    """Return the files that the changes write or edit."""
    return (str(change["path"]) for change in changes if change["change"] in (*FILES, "edit"))


def commands(planned: PlannedChange) -> Iterable[str]:
    """Yield descriptions of what a planned change does in addition to files and values."""
    for change in planned.busy:
        if change["change"] == "run":
            yield str(change["run"])
        elif change["change"] == "unit":
            states = [state for state in (change["enabled"], change["active"]) if state]
            yield f"{change['unit']}: {', '.join(states)}"
        elif change["change"] == "tuned":
            yield "tuned-adm profile nodetune"


def contents(planned: PlannedChange) -> Iterable[str]:
    """Yield each file of a planned change with its path as the first line; only the edits of files that others own."""
    for change in planned.busy:
        if change["change"] in FILES:
            yield f"{change['path']}\n{change['content'] if change['content'] is not None else '(removed)'}"
        elif change["change"] == "edit":
            yield f"{change['path']}: edited, the rest unchanged\n{edited(change)}"
