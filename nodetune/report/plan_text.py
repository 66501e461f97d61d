"""A plan for people: grouped by what it disrupts, hosts folded, before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TextIO

from nodetune import nodeset, show
from nodetune.model import Finding, HostResult, Step
from nodetune.report.text import Lines, console


def print_plan(
    stream: TextIO,
    steps: Sequence[Step],
    by_hand: Mapping[str, tuple[Finding, list[str]]],
    results: Sequence[HostResult],
) -> None:
    """The plan, then what only a person can do, then hosts that were not reached."""
    out = Lines(console(stream))
    single = len(results) == 1
    for disruption, group in groupby(steps, key=lambda step: step.fix.disruption):
        out.line((f"disruption: {disruption}", "bold"))
        for check, same in groupby(group, key=lambda step: step.check):
            _check(out, check, list(same), single)
        out.line("")
    for check, (finding, hosts) in by_hand.items():
        where = "" if single else f"  {nodeset.fold(hosts)}"
        out.line(("by hand  ", "yellow"), (check, "bold"), where)
        out.line(finding.manual or f"nodetune explain {check}", indent="         ")
    for result in results:
        if result.state != "ok":
            out.line((result.state, "magenta"), f"  {show.plain(result.host)}: {show.plain(result.message)}")
    changed = len({step.host for step in steps})
    out.line(f"{len(steps)} steps on {changed} hosts; {len(by_hand)} findings are for a person. Nothing was changed.")


def _check(out: Lines, check: str, steps: list[Step], single: bool) -> None:
    changes: dict[tuple[str, str, str, str], list[str]] = {}
    for step in steps:
        changes.setdefault((_target(step), step.before, step.after, step.fix.file), []).append(step.host)
    for (target, before, after, file), hosts in changes.items():
        where = "" if single else f"{nodeset.fold(hosts)}  "
        kept = f"   kept by {file}" if file else ""
        out.line(where, (check, "bold"), f"  {target}", indent="  ")
        out.line(before, (" → ", "bold"), (after, "green"), (kept, "dim"), indent="      ")


def _target(step: Step) -> str:
    target = show.plain(step.fix.target)
    return f"{target} of {show.names(list(step.fix.subjects))}" if step.fix.subjects else target
