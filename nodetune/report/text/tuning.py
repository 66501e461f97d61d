"""The result of a tuning for people: the decision, the gain of each case, and what was left out and why."""

from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from rich.console import Console

from nodetune.foundation import text
from nodetune.report.text.lines import Lines, console
from nodetune.report.text.verify_table import table
from nodetune.tune.document import chance
from nodetune.tune.headline import headline, interval, percent, resolved
from nodetune.tune.space import in_words

MAX_DROPPED = 8
STYLES = {"accepted": "bold green", "nothing better": "bold"}


def print_tuning(stream: TextIO, found: Mapping[str, Any]) -> None:
    """Print the document of a tuning (nodetune/tune/document.py)."""
    out = console(stream)
    lines = Lines(out)
    told = headline(found)
    lines.line((told.state, STYLES.get(found["state"], "magenta")), f": {told.reason}")
    if told.settle:
        lines.line(("to settle it", "bold"), f": {told.settle}")
    if resolved(found):
        lines.line(("differences seen from", "bold"), f": {resolved(found)}")
    lines.line(f"tuned: {text.plain(found['subject'])} on {_hosts(found['provenance'])}")
    for confirmation in found["confirmations"]:
        lines.line("")
        _print_confirmation(out, lines, confirmation)
        _print_unread(lines, confirmation["setting"], found["trials"])
    _print_dropped(lines, found["dropped"])
    lines.line("")
    lines.line(
        f"{text.count(len(found['trials']), 'trial')} in {text.span(found['seconds'])} of {text.span(found['budget'])}"
    )


def _hosts(provenance: Mapping[str, Any]) -> str:
    hosts = provenance.get("hosts")
    return text.plain(", ".join(map(str, hosts)), 200) if isinstance(hosts, Sequence) and hosts else "this machine"


def _print_confirmation(out: Console, lines: Lines, found: Mapping[str, Any]) -> None:
    verdict = f"refused: {text.plain(found['refused'], 300)}" if found["refused"] else "accepted"
    lines.line((in_words(found["setting"]), "bold"), f": {verdict}")
    printed = table()
    for name in ("case", "default", "tuned", "", "better by", "99 % interval", "p"):
        printed.add_column(name, justify="left" if name in ("case", "") else "right", no_wrap=name != "case")
    for case in found["cases"]:
        printed.add_row(*_cells(case))
    printed.add_row("objective", "", "", "", percent(found["gain"]), interval(found["interval"]), chance(found["p"]))
    out.print(printed)
    lines.line(f"{found['runs']} fresh runs of each, in turn; p adjusted for the number of cases (Holm)")


def _print_unread(lines: Lines, setting: Mapping[str, Any], trials: Sequence[Mapping[str, Any]]) -> None:
    """Print the variables that NCCL did not read in any trial of the setting: they cannot have caused the gain."""
    told = [each["about"].get("unread", ()) for each in trials if each["setting"] == setting and each["values"]]
    unread = sorted(set.intersection(*map(set, told)), key=str) if told else []
    if unread:
        lines.line(
            ("unread", "yellow"),
            f": NCCL's log never names {text.plain(', '.join(map(str, unread)), 200)} with this value",
        )


def _cells(case: Mapping[str, Any]) -> list[str]:
    kind = "" if case.get("objective") else " (watched)" if case.get("judged", True) else " (shown)"
    name = text.plain(case["id"]) + kind
    medians = [f"{case[side]['median']:.4g}" for side in ("default", "tuned")]
    return [
        name,
        *medians,
        text.plain(case["unit"]),
        percent(case["gain"]),
        interval(case["interval"]),
        chance(case["p"]),
    ]


def _print_dropped(lines: Lines, dropped: Sequence[Mapping[str, Any]]) -> None:
    if dropped:
        lines.line("")
        lines.line(("left out", "bold"), f": {text.count(len(dropped), 'setting')}")
    for each in dropped[:MAX_DROPPED]:
        lines.line(f"{in_words(each['setting'])}: {text.plain(each['reason'], 200)}", indent="  ")
    if len(dropped) > MAX_DROPPED:
        lines.line(f"and {len(dropped) - MAX_DROPPED} more (--format json)", indent="  ")
