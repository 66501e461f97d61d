"""One section of an audit in full: each cause with what was seen where, and its steps with this host's own devices."""

from collections.abc import Mapping, Sequence
from typing import TextIO

from nodetune.api.model import Check, Finding, HostResult, disruption_name
from nodetune.audit import explain
from nodetune.audit.manual_steps import filled
from nodetune.audit.summary import seen
from nodetune.foundation import by_key, text
from nodetune.report.sections import DRAINED, NOW, TITLES, UNKNOWN, AuditReport, CauseLine, Section
from nodetune.report.text.host_names import named
from nodetune.report.text.lines import STYLE, Lines, screen

MAX_LINES = 6
"""Different values and steps of one check."""

GUTTER = " " * 10


def write(report: AuditReport, name: str, stream: TextIO, checks: Mapping[str, Check]) -> None:
    """Print the section of this name."""
    out = Lines(screen(stream))
    section = next((each for each in report.sections if each.name == name), None)
    if section is None:
        out.line((f"{TITLES[name]}: nothing", "green"))
        return
    print_section(out, section, checks, single=report.summary.hosts == 1)
    if section.lesser:
        out.whole(f"{section.lesser} low and info more: ", (report.full, "green"))


def print_section(out: Lines, section: Section, checks: Mapping[str, Check], *, single: bool) -> None:
    """Print a section, with the command that acts on it if one does. `single`: the report is about one host."""
    _Printer(out, checks, single=single).section(section)
    if section.name in (NOW, DRAINED):
        out.whole(("to do     ", "dim"), (section.command, "green"))


class _Printer:
    def __init__(self, out: Lines, checks: Mapping[str, Check], *, single: bool) -> None:
        self._out, self._checks, self._single = out, checks, single

    def section(self, section: Section) -> None:
        word = "check" if section.name == UNKNOWN else "finding"
        self._out.line((section.title, "bold"), f" ({text.count(section.findings, word)})")
        self._out.line("")
        if section.name == UNKNOWN:
            for line in section.lines:
                self._unread(line)
            return
        found = by_key(((line.severity, line.check), line) for line in section.lines)
        for (severity, check), lines in found.items():
            since = min((line.since for line in lines if line.since is not None), default=None)
            self._cause(severity, check, [member for line in lines for member in line.members], since)

    def _unread(self, line: CauseLine) -> None:
        where = "" if self._single else f"{named(line.hosts)}: "
        self._out.line(("unknown   ", "magenta"), f"{where}{line.text}")
        for check, members in by_key((found.check, (result, found)) for result, found in line.members).items():
            self._out.line((check, "bold"), f"  {members[0][1].title}", indent=GUTTER)
        self._out.line("")

    def _cause(
        self, severity: str, check: str, members: Sequence[tuple[HostResult, Finding]], since: int | None
    ) -> None:
        title = members[0][1].title + ("" if since is None else f", since {text.day(since)}")
        self._out.line((f"{severity:<8}", STYLE[severity]), "  ", (check, "bold"), f"  {title}")
        told = by_key((self._told(*member), member[0].host) for member in members)
        ordered = sorted(told.items(), key=lambda each: -len(each[1]))
        acts = {each[3:] for each in told}
        for (observed, wanted, reason, *act), hosts in ordered[:MAX_LINES]:
            if not self._single:
                self._out.line((named(hosts), "bold"), indent=GUTTER)
            both = f"{observed}   wanted {wanted}"
            if wanted and self._out.fits(f"{'observed':<9}{both}", indent=GUTTER):
                self._labelled("observed", both)
            else:
                self._labelled("observed", observed)
                self._labelled("wanted", wanted)
            self._labelled("because", reason)
            if len(acts) > 1:
                self._act(*act)
        if left := ordered[MAX_LINES:]:
            count = text.count(sum(len(hosts) for _, hosts in left), "host")
            self._out.line((f"… and other values on {count}: -l HOST shows one", "dim"), indent=GUTTER)
        if len(acts) == 1:
            self._act(*acts.pop())
        known = self._checks.get(check)
        self._labelled("why", explain.explain(known).sections.get("Why it matters", "") if known else "")
        self._out.line("")

    def _act(self, steps: str, confirm: str) -> None:
        self._labelled("do", steps)
        if confirm:  # a command: nobody can paste two halves
            self._out.whole((f"{'confirm':<9}", "dim"), confirm, indent=GUTTER)

    def _told(self, result: HostResult, found: Finding) -> tuple[str, str, str, str, str]:
        known = self._checks.get(found.check)
        confirm = explain.explain(known).sections.get("Confirm manually", "") if known else ""
        steps = _fix(found) or filled(found.manual.strip(), result, found)
        return seen(result, found), found.wanted, found.reason, steps, filled(confirm, result, found)

    def _labelled(self, label: str, words: str) -> None:
        if words:
            self._out.line((f"{label:<9}", "dim"), words, indent=GUTTER, hang=" " * 9)


def _fix(found: Finding) -> str:
    if found.fix is None:
        return ""
    value = text.setting(found.fix.value, found.fix.unit)
    return f"{text.plain(found.fix.target)} = {value} (disruption: {disruption_name(found.fix.disruption)})"
