"""Differences for people at a terminal: equal changes are folded over hosts and devices."""

from collections.abc import Iterable, Sequence
from typing import TextIO

from nodetune.facts.diff import ADDED, CHANGED, GONE, NEW, OFF, UNREAD, WAIVED, Change, Diff, folded
from nodetune.foundation import by_key, text
from nodetune.report.text.host_names import fold, named, unreached
from nodetune.report.text.lines import STYLE, Lines, console

SIGNS = {ADDED: ("+", "green"), GONE: ("-", "red"), CHANGED: ("~", "yellow"), UNREAD: ("?", "magenta")}
"""Signs for changed facts: colour alone is lost on paper."""

KINDS = {NEW: "bold red", UNREAD: "magenta", CHANGED: "yellow", WAIVED: "dim", OFF: "dim", GONE: "green"}
"""The changes of a finding, in the order of the report."""

WORDS = {NEW: "new", CHANGED: "changed", GONE: "gone", UNREAD: "unknown", WAIVED: "waived", OFF: "off"}
MAX_LINES = 6
WIDEST_NAME = 44
Folded = tuple[Change, list[str], list[str]]


def print_diff(stream: TextIO, diff: Diff, before: str, after: str) -> None:
    """Print the whole report."""
    lines = Lines(console(stream))
    lines.line((before, "bold"), " → ", (after, "bold"))
    _hosts(lines, diff)
    lines.line("")
    if diff.of == "facts":
        _facts(lines, diff)
    else:
        _audits(lines, diff)


def _hosts(lines: Lines, diff: Diff) -> None:
    for names, word, style in ((diff.lost, "lost", "bold magenta"), (diff.added, "added", "bold")):
        if names:
            lines.line((f"{text.count(len(names), 'host')} {word}: ", style), fold(names))
    unreached(lines, [("bad facts", host, why) for host, told in diff.bad.items() for why in told])
    states = by_key((state, host) for host, state in diff.states.items() if host not in diff.bad)
    for (was, now), hosts in states.items():
        told = "reached again" if now == "ok" else "no longer reached" if was == "ok" else "not reached"
        became = f" → {text.plain(now)}" * (now not in (was, "ok"))
        lines.line((f"{told}: ", "bold magenta"), named(hosts), f" ({text.plain(was)}{became})")
    if diff.rebooted:
        lines.line(("rebooted in between: ", "bold"), named(diff.rebooted))


def _facts(lines: Lines, diff: Diff) -> None:
    every = folded(diff.changes)
    families = by_key((each[0].what.partition(".")[0], each) for each in every)
    for family, changes in sorted(families.items()):
        lines.line((family, "bold"))
        width = min(WIDEST_NAME, max(len(_name(each)) for each in changes))
        for each in changes:
            _fact(lines, each, diff, width)
    if every:
        lines.line("")
    lines.line((totals(diff), "bold"))
    if diff.readings:
        others = f"{text.count(diff.readings, 'reading')} or {'name' if diff.readings == 1 else 'names'}"
        lines.line(f"{others} also differ (temperatures, counters, serial numbers …): --all")


def _name(each: Folded) -> str:
    change, _, subjects = each
    devices = f" {text.names(subjects)}" if subjects else ""
    return f"{text.plain(change.what.partition('.')[2])}{devices}"


def _fact(lines: Lines, each: Folded, diff: Diff, width: int) -> None:
    change, hosts, _ = each
    sign, style = SIGNS[change.kind]
    name = _name(each)
    where = f"{fold(hosts, 60)}: " if diff.compared > 1 else ""
    told = {ADDED: change.after, GONE: change.before}.get(change.kind, f"{change.before} → {change.after}")
    if len(name) > width or len(told) > 100:
        lines.line((sign, style), " ", name, indent="  ")
        lines.line((where, "bold"), told, indent="      ")
    else:
        lines.line((sign, style), f" {name:<{width}}  ", (where, "bold"), told, indent="  ")


def totals(diff: Diff) -> str:
    """Return the totals of the comparison: its last line, also if the report goes to a file."""
    return _of_facts(diff) if diff.of == "facts" else _of_audits(diff)


def _of_facts(diff: Diff) -> str:
    words = {ADDED: "added", GONE: "gone", CHANGED: "changed", UNREAD: "unknown on one side"}
    every = folded(diff.changes)
    counts = [f"{number} {word}" for kind, word in words.items() if (number := _number(every, kind))]
    none = "no differences" if diff.compared else "nothing to compare: no host is in both"
    over = f" on {text.count(diff.compared, 'host')}" if diff.compared > 1 else ""
    return f"{', '.join(counts) or none}{over}{_not_compared(diff)}"


def _not_compared(diff: Diff) -> str:
    return f"; {text.count(len(diff.states), 'host')} not compared" if diff.states else ""


def _of_audits(diff: Diff) -> str:
    counts = [
        f"{number} {WORDS[kind]}" for kind in KINDS if (number := sum(each.kind == kind for each in diff.changes))
    ]
    told = f"findings: {', '.join(counts)}" if counts else "no findings are new, gone or changed"
    if not diff.compared:
        return f"nothing to compare: no host was audited both times{_not_compared(diff)}"
    return f"{text.count(diff.compared, 'host')} compared; {told}{_not_compared(diff)}"


def _number(every: Iterable[Folded], kind: str) -> int:
    return sum(change.kind == kind for change, _, _ in every)


def _audits(lines: Lines, diff: Diff) -> None:
    for kind in KINDS:
        for changes in by_key((change.what, change) for change in diff.changes if change.kind == kind).values():
            _finding(lines, kind, changes)
    lines.line((totals(diff), "bold"))


def _finding(lines: Lines, kind: str, changes: Sequence[Change]) -> None:
    change = changes[0]
    hosts = [each.host for each in changes]
    severity = (f"{change.severity:<8}", STYLE[change.severity])
    lines.line((f"{WORDS[kind]:<8}", KINDS[kind]), " ", severity, "  ", (change.what, "bold"), f"  {named(hosts)}")
    lines.line(text.plain(change.title), indent=" " * 19)
    variants = folded(changes)
    for each, mine, _ in variants[:MAX_LINES]:
        where = f"{fold(mine, 60)}: " if len(variants) > 1 else ""
        lines.line((where, "bold"), f"{each.before} → {each.after}", indent=" " * 19)
    if len(variants) > MAX_LINES:
        rest = [host for _, mine, _ in variants[MAX_LINES:] for host in mine]
        lines.line((f"… and {text.count(len(variants) - MAX_LINES, 'other')} on {named(rest)}", "dim"), indent=" " * 19)
    lines.line("")
