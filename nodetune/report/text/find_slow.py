"""A search for the slow part, for people at a terminal: each culprit with its evidence, then doubts and the proof."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from nodetune.foundation import text
from nodetune.report.text.lines import Lines, console
from nodetune.verify.find_slow import labels
from nodetune.verify.find_slow.run import SlowSearch

GUTTER = " " * 13
MAX_DOUBTS = 8
SLOW, DOUBT, NOTE = "bold red", "yellow", "dim"


def print_search(stream: TextIO, found: SlowSearch, asked: Sequence[str]) -> None:
    """Print the whole report."""
    lines = Lines(console(stream))
    _head(lines, found)
    for each in found.result.culprits:
        name = labels.name(each.part, found.fleet)
        _line(lines, "slow", SLOW, f"{name}: {labels.loss(each.loss, each.fault)} {labels.evidence(each, found.fleet)}")
        for host in found.hosts(each.part):
            _causes(lines, host, found)
        _line(lines, "", "", labels.next_command(each.part, found, asked))
    for straggler in found.stragglers:
        what = f"{straggler.host} {straggler.subject}: {labels.loss(straggler.loss)} {labels.alone(straggler)}"
        _line(lines, "slow alone", SLOW, what)
        _causes(lines, straggler.host, found)
        _line(lines, "", "", labels.command(["audit", *labels.limited_to(asked, [straggler.host])]))
    _doubts(lines, found)
    for lost in found.unreached:
        _line(lines, lost.state, DOUBT, f"{lost.host}: {lost.message}")
    _line(lines, "proof", SLOW if found.left else "bold green", labels.proof(found))
    if len(found.fleet.nodes) > 3:
        _line(lines, "not tried", NOTE, "paths between hosts that are not neighbours in the order of their names")


def _head(lines: Lines, found: SlowSearch) -> None:
    result, minutes = found.result, sum(found.seconds) / 60
    told = f"{text.count(len(found.fleet.nodes), 'host')}, {text.count(len(result.rounds), 'round')}, {minutes:.1f} min"
    if result.level:
        told += f"; a good pair gives {result.level:.4g} {found.unit} a rail, noise {100 * result.noise:.2g} %"
    lines.line(("find-slow  ", "bold"), told)
    lines.line("")


def _doubts(lines: Lines, found: SlowSearch) -> None:
    doubts = found.result.doubts
    for each in doubts[:MAX_DOUBTS]:
        _line(lines, "undecided", DOUBT, labels.doubt(each, found))
    if len(doubts) > MAX_DOUBTS:
        _line(lines, "", "", f"and {len(doubts) - MAX_DOUBTS} more: --format json lists all")
    if told := labels.bimodal(found):
        _line(lines, "bimodal", NOTE, told)


def _causes(lines: Lines, host: str, found: SlowSearch) -> None:
    for cause in found.causes.get(host, ()):
        _line(lines, "", "", f"{host}: {cause}")
    if host in found.reasons:
        _line(lines, "", "", f"{host}: {found.reasons[host]}")


def _line(lines: Lines, label: str, style: str, told: str) -> None:
    lines.line((f"{label:<12} ", style), text.plain(told), hang=GUTTER)
