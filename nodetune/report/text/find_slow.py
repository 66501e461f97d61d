"""A search for the slow part, for people at a terminal: each culprit with its evidence, then doubts and the proof."""

from collections.abc import Sequence
from typing import TextIO

from nodetune.foundation import text
from nodetune.report.text.lines import Lines, console
from nodetune.verify.find_slow import labels
from nodetune.verify.find_slow.run import SlowSearch

GUTTER = " " * 13
MAX_DOUBTS = 8
SLOW, DOUBT, NOTE = "bold red", "yellow", "dim"


def print_search(stream: TextIO, search: SlowSearch, asked: Sequence[str]) -> None:
    """Print the whole report."""
    lines = Lines(console(stream))
    _head(lines, search)
    for culprit in search.result.culprits:
        name = labels.name(culprit.part, search.fleet)
        _line(
            lines,
            "slow",
            SLOW,
            f"{name}: {labels.loss(culprit.loss, culprit.fault)} {labels.evidence(culprit, search.fleet)}",
        )
        hosts = search.hosts(culprit.part)
        for host in hosts:
            _causes(lines, host, search)
        _line(lines, "", "", labels.next_command(labels.next_step(culprit.part, hosts), asked))
    for straggler in search.stragglers:
        what = f"{straggler.host} {straggler.subject}: {labels.loss(straggler.loss)} {labels.straggler_evidence(straggler)}"
        _line(lines, "slow alone", SLOW, what)
        _causes(lines, straggler.host, search)
        _line(lines, "", "", labels.command(["audit", *labels.limited_to(asked, [straggler.host])]))
    _doubts(lines, search)
    for lost in search.unreached:
        _line(lines, lost.state, DOUBT, f"{lost.host}: {lost.message}")
    _line(lines, "proof", SLOW if search.shortfall else "bold green", labels.proof(search))
    if len(search.fleet.nodes) > 3:
        _line(lines, "not tried", NOTE, "paths between hosts that are not neighbours in the order of their names")


def _head(lines: Lines, search: SlowSearch) -> None:
    result, minutes = search.result, sum(search.seconds) / 60
    summary = (
        f"{text.count(len(search.fleet.nodes), 'host')}, {text.count(len(result.rounds), 'round')}, {minutes:.1f} min"
    )
    if result.level:
        summary += f"; a good pair gives {result.level:.4g} {search.unit} a rail, noise {100 * result.noise:.2g} %"
    lines.line(("find-slow  ", "bold"), summary)
    lines.line("")


def _doubts(lines: Lines, search: SlowSearch) -> None:
    doubts = search.result.doubts
    for doubt in doubts[:MAX_DOUBTS]:
        _line(lines, "undecided", DOUBT, labels.doubt(doubt, search))
    if len(doubts) > MAX_DOUBTS:
        _line(lines, "", "", f"and {len(doubts) - MAX_DOUBTS} more: --format json lists all")
    if bimodal := labels.bimodal(search):
        _line(lines, "bimodal", NOTE, bimodal)


def _causes(lines: Lines, host: str, search: SlowSearch) -> None:
    for cause in search.causes.get(host, ()):
        _line(lines, "", "", f"{host}: {cause}")
    if host in search.reasons:
        _line(lines, "", "", f"{host}: {search.reasons[host]}")


def _line(lines: Lines, label: str, style: str, words: str) -> None:
    lines.line((f"{label:<12} ", style), text.plain(words), hang=GUTTER)
