"""The contents of reports on a scorecard: headline, failing rows by who acts, the rest by status. Pure."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from nodetune.api.model import HostResult
from nodetune.audit import scorecard_status
from nodetune.audit.scorecard_status import (
    FAIL,
    JOB,
    NOT_JUDGED,
    ORGANISATION,
    PASS,
    REFUSED,
    SHOWN,
    SKIP,
    Score,
    Scored,
)
from nodetune.foundation import by_key, text
from nodetune.report import sections
from nodetune.report.sections import CauseLine, CommandOptions

MAX_LENGTH = 16
"""Checks that a command which only explains may name; with more, it explains the whole section."""

COUNTS = {
    FAIL: "fail",
    NOT_JUDGED: "not judged",
    PASS: "pass",
    SKIP: "do not apply here",
    SHOWN: "shown by a figure or a command",
    REFUSED: "refused with a reason",
    JOB: "of the jobs",
    ORGANISATION: "of the organisation",
}
TITLES = {
    NOT_JUDGED: "NOT JUDGED",
    PASS: "PASS",
    SKIP: "DOES NOT APPLY HERE",
    SHOWN: "SHOWN by a figure or a command",
    REFUSED: "REFUSED",
    JOB: "OF THE JOBS",
    ORGANISATION: "OF THE ORGANISATION",
}
SHARED = (REFUSED, JOB, ORGANISATION)
"""Statuses whose criteria share reasons."""


@dataclass(frozen=True)
class CriteriaRow:
    """One check that keeps criteria from passing: their ids, and its line of the audit."""

    criteria: str
    line: CauseLine


@dataclass(frozen=True)
class CommandGroup:
    """The rows of a section that one command acts on."""

    section: str
    title: str
    rows: tuple[CriteriaRow, ...]
    command: str


@dataclass(frozen=True)
class Rest:
    """Criteria that do not fail, of one status, with the reason that they share: (ids, text, reason of its own)."""

    status: str
    title: str
    why: str
    rows: tuple[tuple[str, str, str], ...]


def headline(score: Score) -> str:
    """Return how many criteria have which status, in one sentence: failures first, then what is not judged."""
    if not score.reached:
        return f"{score.card.name}: none of {text.count(score.hosts, 'host')} was reached"
    always = (FAIL, NOT_JUDGED, PASS)
    told = [f"{score.count(each)} {words}" for each, words in COUNTS.items() if each in always or score.count(each)]
    lost = f"; {text.count(score.hosts - score.reached, 'host')} not reached" if score.reached < score.hosts else ""
    return f"{score.card.name} on {text.count(score.reached, 'host')}: {', '.join(told)}{lost}"


def edition(score: Score) -> str:
    """Return which edition of a rating this is."""
    return f"{score.card.title}: {score.card.version}, read {score.card.as_of}, {score.card.source}"


def parts(score: Score, results: Sequence[HostResult], commands: CommandOptions) -> Iterator[CommandGroup]:
    """Yield the failing and unknown rows by who acts, each part with the command for its checks alone."""
    for section in sections.build(scorecard_status.only(score, results), every=True).sections:
        members = [member for line in section.lines for member in line.members]
        chosen = dict.fromkeys(found.check for _, found in members)
        named = shlex.join(word for check in chosen for word in ("-s", check))
        acts = section.name in (sections.NOW, sections.DRAINED)
        asked = replace(commands, selected=named) if acts or len(chosen) <= MAX_LENGTH else commands
        rows = tuple(CriteriaRow(_criteria(score, line), line) for line in section.lines)
        yield CommandGroup(section.name, section.title, rows, asked.of(section.name, members))


def _criteria(score: Score, line: CauseLine) -> str:
    """Return the criteria that a line fails."""
    checks = dict.fromkeys(found.check for _, found in line.members)
    return ", ".join(dict.fromkeys(filter(None, map(score.criteria_of, checks))))


def rest(score: Score) -> Iterator[Rest]:
    """Yield all criteria that do not fail, those that are not judged first; the refused ones by their reason."""
    for status, title in TITLES.items():
        mine = [each for each in score.rows if each.status == status]
        for why, same in by_key((each.why if status in SHARED else "", each) for each in mine).items():
            rows = tuple((each.criterion.name, each.criterion.text, _own(each)) for each in same)
            yield Rest(status, f"{title} ({sum(each.criterion.count for each in same)})", why, rows)


def _own(row: Scored) -> str:
    """Return the words about one criterion alone."""
    why = "" if row.status in SHARED else row.why
    shown = f"shown by {row.criterion.shown}" if row.criterion.shown else ""
    return "; ".join(filter(None, (why, shown, row.criterion.differs)))
