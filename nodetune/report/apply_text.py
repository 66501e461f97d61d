"""What an apply came to, for people: outcomes with hosts folded, what did not come out first, and the way back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

from nodetune import nodeset, show
from nodetune.apply import FAILING, FIXED, NOT_APPLIED, OUTCOMES, PENDING, SKIPPED, Done
from nodetune.playbook import Outcome
from nodetune.report.text import Lines, console
from nodetune.runs.diffs import unified

STYLE = {FIXED: "green", PENDING: "yellow", FAILING: "bold red", NOT_APPLIED: "bold red", SKIPPED: "cyan"}
ORDER = (FAILING, NOT_APPLIED, PENDING, SKIPPED, FIXED)


def print_outcomes(stream: TextIO, done: Sequence[Done], single: bool) -> None:
    """Every step's outcome, steps and hosts with the same outcome and reason together; fixed ones only counted."""
    out = Lines(console(stream))
    print_left(stream, [each for each in done if each.outcome != FIXED or each.reason], single)
    hosts = len({each.step.host for each in done})
    counts = ", ".join(f"{count} {name}" for name, count in tally(done).items() if count) or "nothing to do"
    out.line((counts, "bold"), "" if single else f"  on {hosts} hosts")


def print_left(stream: TextIO, left: Iterable[Done], single: bool) -> None:
    """Steps that are not simply fixed, worst first, with the reason."""
    out = Lines(console(stream))
    checks: dict[tuple[str, str, str], list[str]] = {}
    for each in sorted(left, key=lambda each: (ORDER.index(each.outcome), each.step.check)):
        checks.setdefault((each.outcome, each.reason, each.step.host), []).append(each.step.check)
    hosts: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for (outcome, reason, host), names in checks.items():
        hosts.setdefault((outcome, reason, tuple(names)), []).append(host)
    for (outcome, reason, named), on in hosts.items():
        where = "" if single else f"  {nodeset.fold(on)}"
        out.line((f"{outcome:<15}", STYLE[outcome]), (", ".join(named), "bold"), where)
        if reason:
            out.line(show.plain(reason), indent=" " * 15)


def tally(done: Iterable[Done]) -> dict[str, int]:
    """How many steps came to each outcome."""
    kept = [each.outcome for each in done]
    return {name: kept.count(name) for name in OUTCOMES}


def print_problems(
    stream: TextIO, problems: Mapping[str, Sequence[Mapping[str, Any]]], failed: Mapping[str, str], single: bool
) -> None:
    """What would go wrong (or did), with hosts folded."""
    out = Lines(console(stream))
    same: dict[str, list[str]] = {}
    for host, found in problems.items():
        for each in found:
            same.setdefault(f"{each.get('label', '')}: {each.get('message', '')}", []).append(host)
    for host, message in failed.items():
        same.setdefault(message, []).append(host)
    for text, on in same.items():
        out.line(("problem  ", "bold red"), "" if single else f"{nodeset.fold(on)}  ", show.plain(text))


def print_interrupted(stream: TextIO, dead: Mapping[str, Sequence[Mapping[str, Any]]], single: bool) -> None:
    """Earlier runs that never ended on a host, and what they had changed there."""
    out = Lines(console(stream))
    same: dict[tuple[str, str], list[str]] = {}
    for host, found in dead.items():
        for each in found:
            did = each.get("did")
            labels = [str(label) for label in did] if isinstance(did, list) else []
            key = show.plain(each.get("run")), show.names(labels) if labels else "nothing"
            same.setdefault(key, []).append(host)
    for (run, did), hosts in same.items():
        where = "" if single else f"{nodeset.fold(hosts)}  "
        out.line(("interrupted", "yellow"), f"    {where}run {run} never ended here; it had worked on: {did}")


def print_drained(stream: TextIO, left: Mapping[str, str]) -> None:
    """Nodes that this run drained, and that a person has to bring back."""
    out = Lines(console(stream))
    for host, reason in left.items():
        out.line(("left drained   ", "bold red"), (host, "bold"), f"  {show.plain(reason)}")
    if left:
        out.line("when they are fit: scontrol update NodeName=NAME State=RESUME", indent=" " * 15)


def print_way_back(stream: TextIO, run: str) -> None:
    """In one piece, so that the command can be copied."""
    Lines(console(stream)).whole(("run ", ""), (run, "bold"), (f"; to take it back: nodetune rollback {run}", ""))


def print_rollback(stream: TextIO, outcomes: Mapping[str, Outcome], run: str | None) -> None:
    """What was taken back, what was left alone because someone changed it since (with the difference), what failed."""
    out = Lines(console(stream))
    single = len(outcomes) == 1
    back = {
        host: [done["label"] for done in each.gathered("done") if done.get("changed")]
        for host, each in outcomes.items()
    }
    alike: dict[tuple[str, ...], list[str]] = {}
    for host, labels in back.items():
        alike.setdefault(tuple(labels), []).append(host)
    for names, hosts in alike.items():
        if names:
            out.line(("" if single else f"{nodeset.fold(hosts)}  ", "bold"), f"taken back: {show.names(list(names))}")
    for host, each in outcomes.items():
        for refused in each.gathered("refused"):
            where = "" if single else f"{host}  "
            out.line(("left alone  ", "yellow"), where, show.plain(f"{refused.get('label')}: {refused.get('message')}"))
            _diff(out, unified(each for each in [refused.get("diff")] if isinstance(each, dict) and each))
    problems = {host: each.gathered("problems") for host, each in outcomes.items()}
    failed = {host: each.message for host, each in outcomes.items() if each.state != "ok"}
    print_problems(stream, problems, failed, single)
    count = sum(len(labels) for labels in back.values())
    left = sum(len(each.gathered("refused")) for each in outcomes.values())
    more = f", {left} left alone (--force takes them back as well)" if left else ""
    out.line((f"{count} changes {'taken back' if run else 'would be taken back'}{more}", "bold"))
    if run:
        out.line("this rollback is run ", (run, "bold"), "; it can be taken back like any other")


def print_diffs(stream: TextIO, diffs: Mapping[str, Sequence[str]], single: bool) -> None:
    """Unified diffs, host by host; the same change on several hosts is shown once."""
    out = Lines(console(stream))
    same: dict[str, list[str]] = {}
    for host, texts in diffs.items():
        for text in texts:
            same.setdefault(text, []).append(host)
    for text, hosts in same.items():
        if not single:
            out.line((nodeset.fold(hosts), "bold"))
        _diff(out, text)
        out.line("")


def _diff(out: Lines, text: str) -> None:
    for line in text.splitlines():
        style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
        out.whole((show.plain(line), style))
