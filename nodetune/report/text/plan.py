"""A plan for people: what an audit says in sections by who acts, with all that fixes write, run and interrupt."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, TextIO

from nodetune.api.model import DISRUPTIONS, FREE, Finding, HostResult
from nodetune.foundation import by_key
from nodetune.foundation import text as plain_text
from nodetune.remediation import plan as planning
from nodetune.remediation.host_changes import PlannedChange
from nodetune.remediation.host_view import FILES
from nodetune.remediation.plan import CODE, HostPlan, edited
from nodetune.report import sections
from nodetune.report.sections import DRAINED, NOW, UNKNOWN, CauseLine, CommandOptions, Section
from nodetune.report.text.audit import MAX_LINES, SEVERITY, Columns, print_judged
from nodetune.report.text.host_names import named, unreached
from nodetune.report.text.lines import Lines, screen

MAX_MANUAL = 3
"""Up to this many causes that need a person have lines: a plan is about the others."""

INDENT = "  "
ACTS = {NOW: FREE, DRAINED: tuple(each for each in DISRUPTIONS if each not in FREE)}
"""The disruptions of the changes in a section."""

Words = Callable[[Sequence[PlannedChange]], Iterable[str]]
"""The description of planned changes, equal for hosts that are alike."""


def print_plan(
    stream: TextIO,
    plans: Sequence[HostPlan],
    commands: CommandOptions | None = None,
    *,
    proposes: bool = True,
    files: bool = False,
    ending: str = " Nothing was changed.",
    following: str = "",
) -> None:
    """Print the plan, and what needs a person or was not judged or not reached.

    With `files`, every file is shown in full; `ending` ends the totals. `commands` has the options for proposed commands;
    `proposes`: also those that fix. `following` is the command to continue with.
    """
    out = Lines(screen(stream))
    Printer(out, plans, commands or CommandOptions(), files=files, proposes=proposes).plan(ending)
    if following:
        out.whole(("next     ", "dim"), (following, "green"))


def totals(plans: Sequence[HostPlan]) -> str:
    """Return the totals of the plan: its last line, also if the plan goes to a file."""
    steps = planning.steps(plans)
    doable = [host for host, _, why in steps if not why]
    cannot = [found for _, found, why in steps if why and not planning.is_over(why)]
    manual = len(cannot) + sum(found.fix is None for plan in plans for found in plan.result.causes())
    lost = sum(plan.result.state != "ok" for plan in plans)
    told = f"{plain_text.count(manual, 'finding')} {'needs' if manual == 1 else 'need'} manual work"
    more = f"; {plain_text.count(lost, 'host')} not reached" if lost else ""
    unknown = len({check for check, _ in planning.unknown(plan.result for plan in plans)})
    more += f"; {plain_text.count(unknown, 'check')} unknown" if unknown else ""
    return f"{plain_text.count(len(doable), 'step')} on {plain_text.count(len(set(doable)), 'host')}; {told}{more}"


class Printer:
    def __init__(
        self,
        out: Lines,
        plans: Sequence[HostPlan],
        commands: CommandOptions,
        *,
        files: bool = False,
        proposes: bool = True,
    ) -> None:
        self._out, self._plans, self._commands = out, plans, commands
        self._files, self._proposes = files, proposes
        self._whole: dict[int, Finding] = {}

    def plan(self, ending: str) -> None:
        report = sections.build([self._planned(each) for each in self._plans], self._commands, every=True)
        shown = {each.name: self._shown(each) for each in report.sections}
        columns = Columns(self._out, [line for lines in shown.values() for line in lines], len(self._plans))
        results = [plan.result for plan in self._plans]
        print_judged(self._out, results)
        self._out.line((f"{totals(self._plans)}.", "bold"), ending)
        for section in report.sections:
            self._section(section, shown[section.name], columns)
        self._left_out()
        self._waived(results)
        lost = [(each.state, each.host, each.message) for each in results if each.state != "ok"]
        if lost:
            self._out.gap()
        unreached(self._out, lost, self._commands.audit())

    def _planned(self, plan: HostPlan) -> HostResult:
        """Return a host's result with what its plan fixes, and what needs a person or is unknown."""
        planned = {id(found) for found in plan.findings}
        kept = (found for found in plan.result.findings if found.fix is None or id(found) in planned)
        return replace(plan.result, findings=tuple(map(self._with_own_line, kept)))

    def _with_own_line(self, found: Finding) -> Finding:
        """Return a finding that no other one reports: each fix is a step. Hosts share findings, so each is made once."""
        if found.fix is None or not (found.part_of or found.reported_by):
            return found
        return self._whole.setdefault(id(found), replace(found, part_of="", reported_by={}))

    def _shown(self, section: Section) -> Sequence[CauseLine]:
        if section.name in ACTS or len(section.lines) <= MAX_MANUAL:
            return section.lines
        return section.lines[: MAX_LINES[UNKNOWN]] if section.name == UNKNOWN else ()

    def _section(self, section: Section, shown: Sequence[CauseLine], columns: Columns) -> None:
        self._out.gap()
        word = "step" if section.name in ACTS else "check" if section.name == UNKNOWN else "finding"
        self._out.line((f"{section.title} ({plain_text.count(section.findings, word)})", "bold"))
        for line in shown:
            columns.row(line)
            self._reasons(line)
        if section.name in ACTS:
            self._changes(ACTS[section.name])
        if command := self._command(section):
            self._out.whole((f"{'to do':<{SEVERITY}}", "dim"), (command, "green"), indent=INDENT)

    def _command(self, section: Section) -> str:
        if section.name not in ACTS:
            return section.command
        more = "--dry-run" if section.command.startswith("nodetune apply") else "--export changes"
        return f"{section.command} {more}" if self._proposes else ""

    def _reasons(self, line: CauseLine) -> None:
        """Print what sets the values of a fix today, or what a person does."""
        told = ((found.reason if found.fix else found.manual, result.host) for result, found in line.members)
        for reason, hosts in by_key(each for each in told if each[0]).items():
            where = "" if len(hosts) == len(line.hosts) else self._where(hosts)
            self._out.line((where, ""), (plain_text.plain(reason, 600), "dim"), indent=INDENT + " " * SEVERITY)

    def _changes(self, disruptions: Sequence[str]) -> None:
        """Print all that the changes of these disruptions do in addition to values."""
        self._each(disruptions, "writes", lambda changes: _folded(_busy(changes)))
        self._each(disruptions, "in place", lambda changes: sorted(_idle(changes)))
        self._each(disruptions, "runs", lambda changes: (each for change in changes for each in commands(change)))
        self._each(disruptions, "note", lambda changes: (each for change in changes for each in change.notes))
        if self._files:
            self._each(disruptions, "", lambda changes: (each for change in changes for each in contents(change)))

    def _each(self, disruptions: Sequence[str], title: str, words: Words) -> None:
        """Print the changes of these disruptions, one line for each text, with its hosts."""
        mine = ((plan.host, [each for each in plan.changes if each.disruption in disruptions]) for plan in self._plans)
        told = ((text, host) for host, changes in mine for text in dict.fromkeys(words(changes)))
        for text, hosts in by_key(told).items():
            if title:
                parts = (f"{title:<{SEVERITY}}", "cyan"), self._where(hosts), plain_text.plain(text, 600)
                self._out.line(*parts, indent=INDENT, hang=" " * SEVERITY)
            else:
                self._in_full(text, hosts)

    def _in_full(self, text: str, hosts: list[str]) -> None:
        head, *lines = text.splitlines()
        self._out.line("")
        self._out.line(self._where(hosts), (plain_text.plain(head), "bold"), indent=INDENT)
        for line in lines:
            self._out.whole((plain_text.plain(line, 4000), ""), indent=" " * 4)

    def _left_out(self) -> None:
        """Print the fixes that are left out: unsupported ones, and those with more disruption than was asked for."""
        steps = [step for step in planning.steps(self._plans) if step[2]]
        cannot = by_key(((found.check, why), host) for host, found, why in steps if not planning.is_over(why))
        over = sum(planning.is_over(why) for *_, why in steps)
        if cannot or over:
            self._out.gap()
        for (check, why), hosts in cannot.items():
            self._out.line(("unsupported  ", "yellow"), self._where(hosts), (check, "bold"))
            self._out.line(why, indent=" " * 13)
        if over:
            told = f"{plain_text.count(over, 'step')} with more disruption: --max-disruption allows more"
            self._out.line(("left out ", "yellow"), told)

    def _waived(self, results: Iterable[HostResult]) -> None:
        """Print the findings that have a fix and are not planned because a site file waives them."""
        every = ((result.host, found) for result in results for found in result.findings)
        waived = by_key(
            ((found.check, found.reason), host) for host, found in every if found.status == "waived" and found.fix
        )
        if waived:
            self._out.gap()
        for (check, reason), hosts in waived.items():
            self._out.line(("waived   ", "dim"), self._where(hosts), (check, "bold"), f"  {plain_text.plain(reason)}")

    def _where(self, hosts: list[str]) -> str:
        return "" if len(self._plans) == 1 else f"{named(hosts)}  "


def _busy(changes: Iterable[PlannedChange]) -> list[str]:
    return [path for change in changes for path in paths(change.busy)]


def _idle(changes: Sequence[PlannedChange]) -> set[str]:
    """Return the files with settings that are as planned already."""
    every = {path for change in changes for path in paths(change.changes) if not path.startswith(CODE)}
    return every - set(_busy(changes))


def _folded(paths: Iterable[str]) -> Iterable[str]:
    """Return the files, those of one program of nodetune's counted."""
    found = by_key((_program(path), path) for path in dict.fromkeys(paths))
    for program, files in found.items():
        yield files[0] if len(files) == 1 else f"{program} ({len(files)} files)"


def _program(path: str) -> str:
    """Return the folder of a program of nodetune's; any other file is its own."""
    if not path.startswith(CODE):
        return path
    return f"{CODE}{PurePosixPath(path.removeprefix(CODE)).parts[0]}/"


def paths(changes: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    """Yield what the changes write or edit: files, and kernel arguments where a program keeps them."""
    for change in changes:
        if change["change"] in (*FILES, "edit"):
            yield str(change["path"])
        elif change["change"] == "bootarg":
            yield "kernel arguments, by grubby"


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
