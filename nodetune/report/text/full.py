"""The full audit for people at a terminal: each cause with what was seen where, its steps and why; or host by host."""

import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import TextIO

from nodetune.api.model import Check, HostResult
from nodetune.audit import explain
from nodetune.audit.summary import alike, compliant, fleet_groups, seen
from nodetune.foundation import text
from nodetune.report import sections
from nodetune.report.sections import UNKNOWN, CommandOptions
from nodetune.report.text import audit, explained
from nodetune.report.text.host_names import named
from nodetune.report.text.lines import STYLE, Lines, screen

MAX_CHECKS = 10
"""Up to this many checks are few: why some of them do not apply is shown, otherwise it is only counted."""

GUTTER = " " * 10


def write(
    results: Sequence[HostResult],
    stream: TextIO,
    commands: CommandOptions,
    checks: Mapping[str, Check],
    by_host: bool = False,
    today: Callable[[], datetime.date] = datetime.date.today,
) -> None:
    """Print the report by finding or by host. `commands` has the options for proposed commands."""
    out = Lines(screen(stream))
    report = sections.build(results, commands, every=True)
    page = audit.Printer(out, results, report, commands)
    page.head()
    if few := sum(len(hosts) for hosts, comparisons, _ in fleet_groups(results).values() if not comparisons):
        told = "too few similar hosts to find outliers: compare with one host (--reference) or select other cohorts (--cohort)"
        out.line((f"{text.count(few, 'host')}: {told}", "dim"))
    known = {**{each.id: each for each in explain.comparisons()}, **checks}
    shown = [each for each in report.sections if each.name == UNKNOWN or not by_host]
    if by_host:
        _by_host(out, results)
    for section in shown:
        out.gap()
        explained.print_section(out, section, known, single=len(results) == 1)
    out.gap()
    _alike(out, ("waived  ", "dim"), results, "waived")
    if len({found.check for result in results for found in result.findings}) <= MAX_CHECKS:
        _alike(out, ("not applicable  ", "dim"), results, "skip")
    page.end(today())


def _by_host(out: Lines, results: Sequence[HostResult]) -> None:
    for result in sorted(results, key=lambda one: one.host):
        if result.state != "ok":
            continue
        failing = sorted(result.causes(), key=lambda found: found.rank)
        told = text.count(len(failing), "finding") if failing else "compliant" if compliant(result) else "no findings"
        out.gap()
        out.line((text.plain(result.host), "bold underline"), f"  {told}")
        for found in failing:
            reason = f" ({found.reason})" if found.reason else ""
            wanted = f", wanted {found.wanted}" if found.wanted else ""
            severity = (f"{found.severity:<8}", STYLE[found.severity])
            out.line(severity, f"  {found.check}: {seen(result, found)}{wanted}{reason}", indent="  ", hang=" " * 10)


def _alike(out: Lines, label: tuple[str, str], results: Sequence[HostResult], status: str) -> None:
    """Print the findings of one status: a line for each check and reason."""
    for (check, reason), hosts in alike(results, status).items():
        where = "" if len(results) == 1 else f"  {named(hosts, 60)}"
        out.line(label, (check, "bold"), f"{where}: {reason}", hang=GUTTER)
