"""A plan for people: grouped by what it disrupts, hosts folded, before and after, and what else is touched."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, TextIO

from nodetune import show
from nodetune.fixes import Group
from nodetune.model import DISRUPTIONS, Finding, HostResult, Step
from nodetune.plan import Built, sorted_out
from nodetune.report.lines import Lines, console
from nodetune.report.text_hosts import named, unreached

Words = Callable[[Group], Iterable[str]]
"""What a group does, said in texts that are equal where hosts are alike."""


def print_plan(
    stream: TextIO,
    steps: Sequence[Step],
    by_hand: Mapping[str, tuple[Finding, list[str]]],
    results: Sequence[HostResult],
    built: Mapping[str, Built] | None = None,
    *,
    files: bool = False,
    ending: str = " Nothing was changed.",
) -> None:
    """The plan, what only a person can do, and the hosts that were not reached. `built`: host → how it is carried out.

    With `files` every file is shown whole; `ending` ends the last line.
    """
    Printer(Lines(console(stream)), results, built or {}, files=files).plan(steps, by_hand, ending)


class Printer:
    def __init__(
        self, out: Lines, results: Sequence[HostResult], built: Mapping[str, Built], *, files: bool = False
    ) -> None:
        self._out = out
        self._results = results
        self._built = built
        self._files = files
        self._why = {(each.host, found.check): found.reason for each in results for found in each.failing()}

    def plan(self, steps: Sequence[Step], by_hand: Mapping[str, tuple[Finding, list[str]]], ending: str) -> None:
        doable, cannot = sorted_out(steps, self._built)
        for disruption in DISRUPTIONS:
            same = [step for step in doable if step.fix.disruption == disruption]
            if same:
                self._disruption(disruption, same)
        self._cannot(cannot)
        self._by_hand(by_hand)
        unreached(self._out, [(each.state, each.host, each.message) for each in self._results if each.state != "ok"])
        changed = len({step.host for step in doable})
        left = len(by_hand) + len({step.check for step, _ in cannot})
        told = f"{show.count(left, 'finding')} {'is' if left == 1 else 'are'} for a person"
        self._out.line(f"{show.count(len(doable), 'step')} on {show.count(changed, 'host')}; {told}.{ending}")

    def _disruption(self, disruption: str, steps: list[Step]) -> None:
        self._out.line((f"disruption: {disruption}", "bold"))
        for check, same in groupby(steps, key=lambda step: step.check):
            self._check(check, list(same))
        shown = {path for step in steps for path in self._files_of(step)}
        self._each(disruption, "writes", lambda group: (path for path in paths(group) if path not in shown))
        self._each(disruption, "runs", commands)
        self._each(disruption, "note", lambda group: group.notes)
        if self._files:
            self._each(disruption, "", contents)
        self._out.line("")

    def _check(self, check: str, steps: list[Step]) -> None:
        changes: dict[tuple[str, ...], list[str]] = {}
        for step in steps:
            reason, files = self._why.get((step.host, step.check), ""), show.names(self._files_of(step))
            changes.setdefault((_target(step), step.before, step.after, files, reason), []).append(step.host)
        for (target, before, after, files, reason), hosts in changes.items():
            kept = f"   kept by {files}" if files else ""
            self._out.line(self._where(hosts), (check, "bold"), f"  {target}", indent="  ")
            self._out.line(before, (" → ", "bold"), (after, "green"), (kept, "dim"), indent="      ")
            if reason:
                self._out.line((reason, "dim"), indent="      ")

    def _files_of(self, step: Step) -> list[str]:
        """Where the next boot finds what a step sets: its kind's usual file, or what is written on this very host."""
        usual = [step.fix.file] if step.fix.file else []
        for group in self._built.get(step.host, Built()).groups:
            if step.check in group.checks:
                mine = [change for change in group.changes if step.check in change.get("checks", group.checks)]
                if any(change["change"] == "bootarg" for change in mine):
                    return ["grubby"]
                written = [str(change["path"]) for change in mine if change["change"] in ("file", "edit")]
                return usual if set(usual) & set(written) else written or usual
        return usual

    def _each(self, disruption: str, title: str, words: Words) -> None:
        """What the groups of this disruption do, one line a text, with the hosts that it is for."""
        hosts_of: dict[str, list[str]] = {}
        for host, built in self._built.items():
            for group in built.groups:
                if group.disruption == disruption:
                    for text in dict.fromkeys(words(group)):
                        named = hosts_of.setdefault(text, [])
                        named.extend([] if host in named else [host])
        for text, hosts in hosts_of.items():
            if title:
                self._out.line((f"{title:<8}", "cyan"), self._where(hosts), show.plain(text, 600), indent="  ")
            else:
                self._whole(text, hosts)

    def _whole(self, text: str, hosts: list[str]) -> None:
        head, *lines = text.splitlines()
        self._out.line("")
        self._out.line(self._where(hosts), (show.plain(head), "bold"), indent="  ")
        for line in lines:
            self._out.whole((show.plain(line, 4000), ""), indent="    ")

    def _cannot(self, skipped: list[tuple[Step, str]]) -> None:
        hosts_of: dict[tuple[str, str], list[str]] = {}
        for step, why in skipped:
            hosts_of.setdefault((step.check, why), []).append(step.host)
        for (check, why), hosts in hosts_of.items():
            self._out.line(("not by us  ", "yellow"), self._where(hosts), (check, "bold"))
            self._out.line(why, indent="           ")

    def _by_hand(self, by_hand: Mapping[str, tuple[Finding, list[str]]]) -> None:
        for check, (finding, hosts) in by_hand.items():
            where = "" if len(self._results) == 1 else f"  {named(hosts)}"
            self._out.line(("by hand  ", "yellow"), (check, "bold"), where)
            self._out.line(finding.manual or f"nodetune explain {check}", indent="         ")

    def _where(self, hosts: list[str]) -> str:
        return "" if len(self._results) == 1 else f"{named(hosts)}  "


def _target(step: Step) -> str:
    target = show.plain(step.fix.target)
    return f"{target} of {show.names(list(step.fix.subjects))}" if step.fix.subjects else target


def paths(group: Group) -> Iterable[str]:
    """The files that a group writes or edits."""
    return (str(change["path"]) for change in group.changes if change["change"] in ("file", "edit"))


def commands(group: Group) -> Iterable[str]:
    """What a group does beside files and values, in words."""
    for change in group.changes:
        if change["change"] == "run":
            yield str(change["run"])
        elif change["change"] == "unit":
            states = [state for state in (change["enabled"], change["active"]) if state]
            yield f"{change['unit']}: {', '.join(states)}"


def contents(group: Group) -> Iterable[str]:
    """Each file of a group, its path as the first line; of files of others what is changed in them."""
    for change in group.changes:
        if change["change"] == "file":
            yield f"{change['path']}\n{change['content'] if change['content'] is not None else '(removed)'}"
        elif change["change"] == "edit":
            yield f"{change['path']}: edited, the rest stays\n{edited(change)}"


def edited(change: Mapping[str, Any]) -> str:
    """What an edit does to a file, in words or as the lines that it puts there."""
    given = change["with"]
    if change["how"] == "json":
        return json.dumps(given["keys"], indent=1)
    if change["how"] == "assignments":
        return "\n".join(f"{name}={value}" for name, value in given["values"].items())
    if change["how"] == "fstab_option":
        without = f", without {', '.join(given['remove'])}" if given["remove"] else ""
        return f"{given['mount_point']}: with the option {given['option']}{without}"
    return "swap lines are commented out" if change["how"] == "fstab_no_swap" else json.dumps(dict(given))
