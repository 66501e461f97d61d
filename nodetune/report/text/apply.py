"""The result of an apply for people: outcomes with hosts folded, failures first, and the rollback command."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

from nodetune.foundation import by_key, nodeset
from nodetune.foundation import text as plain_text
from nodetune.remediation.ansible.events import Outcome
from nodetune.remediation.outcomes import FAILING, FIXED, NOT_APPLIED, PENDING, SKIPPED, StepOutcome, tally
from nodetune.remediation.runs.diffs import unified
from nodetune.report.text.lines import Lines, console

STYLE = {FIXED: "green", PENDING: "yellow", FAILING: "bold red", NOT_APPLIED: "bold red", SKIPPED: "cyan"}
ORDER = (FAILING, NOT_APPLIED, PENDING, SKIPPED, FIXED)


def print_outcomes(stream: TextIO, done: Sequence[StepOutcome], single: bool) -> None:
    """Print every outcome, with equal steps and hosts folded. Fixed steps are only counted."""
    out = Lines(console(stream))
    print_left(stream, [each for each in done if each.outcome != FIXED or each.reason], single)
    hosts = len({each.host for each in done})
    out.line((counts(done), "bold"), "" if single else f"  on {hosts} hosts")


def counts(done: Sequence[StepOutcome]) -> str:
    """Return the number of steps with each outcome."""
    return ", ".join(f"{count} {name}" for name, count in tally(done).items() if count) or "nothing to do"


def print_left(stream: TextIO, left: Iterable[StepOutcome], single: bool) -> None:
    """Print the steps that are not fixed, or only in part, worst first and with the reason."""
    out = Lines(console(stream))
    ordered = sorted(left, key=lambda each: (ORDER.index(each.outcome), each.check))
    checks = by_key(((each.outcome, each.reason, each.host), each.check) for each in ordered)
    hosts = by_key(((outcome, reason, tuple(names)), host) for (outcome, reason, host), names in checks.items())
    for (outcome, reason, named), on in hosts.items():
        where = "" if single else f"  {nodeset.fold(on)}"
        out.line((f"{outcome:<15}", STYLE[outcome]), (", ".join(named), "bold"), where)
        if reason:
            out.line(plain_text.plain(reason), indent=" " * 15)


def diffs_of(outcomes: Mapping[str, Outcome]) -> dict[str, list[str]]:
    """Return host → a unified diff for each change of a play."""
    return {host: [unified([each]) for each in outcome.gathered("diff")] for host, outcome in outcomes.items()}


def problems_of(outcomes: Mapping[str, Outcome]) -> dict[str, list[dict[str, Any]]]:
    """Return host → the problems of single changes."""
    return {host: outcome.gathered("problems") for host, outcome in outcomes.items()}


def failures_of(outcomes: Mapping[str, Outcome]) -> dict[str, str]:
    """Return host → the reason why the play did not complete."""
    return {host: outcome.message for host, outcome in outcomes.items() if outcome.state != "ok"}


SLURM_RESUME, KUBERNETES_RESUME = "scontrol update NodeName=NAME State=RESUME", "kubectl uncordon NAME"
MANY = 10
"""A diff with this many lines is printed only once."""


def print_problems(
    stream: TextIO, problems: Mapping[str, Sequence[Mapping[str, Any]]], failed: Mapping[str, str], single: bool
) -> None:
    """Print expected or actual problems, with hosts folded."""
    out = Lines(console(stream))
    told = [
        (f"{each.get('label', '')}: {each.get('message', '')}", host) for host in problems for each in problems[host]
    ]
    for text, on in by_key([*told, *((message, host) for host, message in failed.items())]).items():
        out.line(
            ("problem  ", "bold red"), "" if single else f"{nodeset.fold(on)}  ", plain_text.plain(text), hang=" " * 9
        )


def print_interrupted(stream: TextIO, dead: Mapping[str, Sequence[Mapping[str, Any]]], single: bool) -> None:
    """Print earlier runs that were interrupted on a host and what they had changed."""
    out = Lines(console(stream))
    same: dict[tuple[str, str], list[str]] = {}
    for host, found in dead.items():
        for each in found:
            did = each.get("did")
            labels = [str(label) for label in did] if isinstance(did, list) else []
            key = plain_text.plain(each.get("run")), plain_text.names(labels) if labels else "nothing"
            same.setdefault(key, []).append(host)
    for (run, did), hosts in same.items():
        where = "" if single else f"{nodeset.fold(hosts)}  "
        out.line(("interrupted", "yellow"), f"    {where}run {run} was interrupted here; it had changed: {did}")


def print_drained(stream: TextIO, left: Mapping[str, str], resume: str = SLURM_RESUME) -> None:
    """Print nodes that this run drained and that an operator must resume, and the command for that."""
    out = Lines(console(stream))
    for host, reason in left.items():
        out.line(("left drained   ", "bold red"), (host, "bold"), f"  {plain_text.plain(reason)}")
    if left:
        out.line(f"to resume them: {resume}", indent=" " * 15)


def print_way_back(stream: TextIO, run: str, command: str) -> None:
    """Print the rollback command on one line so that it can be copied; empty if the run changed nothing."""
    told = f"; to undo it: {command}" if command else " changed nothing"
    Lines(console(stream)).whole(("run ", ""), (run, "bold"), (told, ""))


def print_dry_run(stream: TextIO, diffs: Mapping[str, Sequence[str]], problems: int) -> None:
    """Print the totals of a dry run as its last line."""
    Lines(console(stream)).line((dry_run(diffs, problems), "bold"))


def dry_run(diffs: Mapping[str, Sequence[str]], problems: int) -> str:
    """Return the totals of a dry run."""
    changes, hosts = sum(map(len, diffs.values())), sum(1 for texts in diffs.values() if texts)
    told = f"{plain_text.count(changes, 'change')} on {plain_text.count(hosts, 'host')}"
    wrong = f", {plain_text.count(problems, 'problem')}" if problems else ""
    return f"dry run: {told}{wrong}. Nothing was changed."


def print_standing(stream: TextIO, title: str, hosts: Sequence[str], changed: Sequence[str]) -> None:
    """Print a run that would be rolled back and what it changed."""
    out = Lines(console(stream))
    out.line((title, "bold"), f"  {nodeset.fold(hosts)}")
    told = plain_text.names(list(dict.fromkeys(changed))) if changed else "unknown: it was interrupted"
    out.line(f"changed: {told}", indent="  ")


def print_rollback(stream: TextIO, outcomes: Mapping[str, Outcome], made: Sequence[str]) -> None:
    """Print what was undone, what was kept because it has changed since (with the diff), and what failed.

    `made` are the rollbacks that were recorded; none in a dry run.
    """
    out = Lines(console(stream))
    single, undone = len(outcomes) == 1, "undone" if made else "would be undone"
    back = [
        (tuple([done["label"] for done in each.gathered("done") if done.get("changed")]), host)
        for host, each in outcomes.items()
    ]
    for names, hosts in by_key(back).items():
        if names:
            where = "" if single else f"{nodeset.fold(hosts)}  "
            out.line((where, "bold"), f"{undone}: {plain_text.names(list(names))}", hang=" " * 4)
    for host, each in outcomes.items():
        for refused in each.gathered("refused"):
            where = "" if single else f"{host}  "
            out.line(
                ("not undone  ", "yellow"), where, plain_text.plain(f"{refused.get('label')}: {refused.get('message')}")
            )
            print_diff_lines(out, unified(each for each in [refused.get("diff")] if isinstance(each, dict) and each))
    print_problems(stream, problems_of(outcomes), failures_of(outcomes), single)
    out.line((rolled_back(outcomes, made), "bold"))
    changed = any(names for names, _ in back) or any(each.state != "ok" for each in outcomes.values())
    for run in made if changed else ():
        out.line("this rollback is run ", (run, "bold"), "; it can be rolled back too")


def rolled_back(outcomes: Mapping[str, Outcome], made: Sequence[str]) -> str:
    """Return the totals of a rollback: its last line, also if the report goes to a file."""
    count = sum(bool(done.get("changed")) for each in outcomes.values() for done in each.gathered("done"))
    left = [refused for each in outcomes.values() for refused in each.gathered("refused")]
    force = "" if all(refused.get("moved") for refused in left) else " (--force undoes what was changed since)"
    more = f", {len(left)} not undone{force}" if left else ""
    failed = sum(each.state != "ok" for each in outcomes.values())
    lost = f", {plain_text.count(failed, 'host')} failed or unreachable" if failed else ""
    return f"{plain_text.count(count, 'change')} {'undone' if made else 'would be undone'}{more}{lost}"


def print_diffs(stream: TextIO, diffs: Mapping[str, Sequence[str]], single: bool) -> None:
    """Print unified diffs, host by host. A change that is equal on several hosts appears once."""
    out = Lines(console(stream))
    shown: dict[str, str] = {}
    for text, hosts in by_key((text, host) for host, texts in diffs.items() for text in texts).items():
        if not single:
            out.line((nodeset.fold(hosts), "bold"))
        print_diff_lines(out, _short(text, shown))
        out.line("")


def _short(text: str, shown: dict[str, str]) -> str:
    """Return a diff. If it is long and was already shown for another file, only refer to that file."""
    head, body = text.splitlines()[:2], text.splitlines()[2:]
    name = head[-1].removeprefix("+++ ").partition(" (")[0] if head else ""
    first = shown.setdefault("\n".join(body), name)
    if first == name or len(body) < MANY:
        return text
    return "\n".join([*head, f"the same {len(body)} lines as {first}"])


def print_diff_lines(out: Lines, text: str) -> None:
    """Print the lines of a unified diff in their colours."""
    for line in text.splitlines():
        style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
        out.whole((plain_text.plain(line, 2000), style))
