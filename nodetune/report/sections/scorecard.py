"""The contents of reports on a scorecard: headline, failing rows by who acts, the rest by status. Pure."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from nodetune.api.model import HostResult
from nodetune.audit import scorecard_status
from nodetune.audit.scorecard_status import FAIL, JUDGED, NOT_JUDGED, OFF, PASS, SKIP, UNKNOWN, Score
from nodetune.foundation import by_key, text
from nodetune.report import sections
from nodetune.report.sections import CauseLine, CommandOptions

MAX_LENGTH = 16
"""Checks that a command which only explains may name; with more, it explains the whole section."""

REST = {PASS: "PASS", SKIP: "DOES NOT APPLY", OFF: "SWITCHED OFF OR LEFT OUT", NOT_JUDGED: "NOT JUDGED by nodetune"}


@dataclass(frozen=True)
class CriteriaRow:
    """One check that keeps criteria from passing: their ids, and its line of the audit."""

    criteria: str
    line: CauseLine


@dataclass(frozen=True)
class CommandGroup:
    """The rows that one command acts on."""

    title: str
    rows: tuple[CriteriaRow, ...]
    command: str


def headline(score: Score) -> str:
    """Return how many criteria pass, in one sentence."""
    if not score.reached:
        return f"{score.card.name}: none of {text.count(score.hosts, 'host')} was reached"
    told = f"{score.card.name}: {score.count(PASS)} of {score.count(*JUDGED)} judged criteria pass on "
    told += text.count(score.reached, "host")
    named = ((FAIL, "fail"), (UNKNOWN, "unknown"))
    rest = ", ".join(f"{score.count(status)} {word}" for status, word in named if score.count(status))
    told += f" ({rest})" if rest else ""
    others = (
        (SKIP, "do not apply"),
        (OFF, "are switched off or left out"),
        (NOT_JUDGED, "cannot be judged by nodetune"),
    )
    more = ", ".join(f"{score.count(status)} {word}" for status, word in others if score.count(status))
    lost = f"; {text.count(score.hosts - score.reached, 'host')} not reached" if score.reached < score.hosts else ""
    return f"{told}; {more}{lost}" if more else f"{told}{lost}"


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
        yield CommandGroup(section.title, rows, asked.of(section.name, members))


def _criteria(score: Score, line: CauseLine) -> str:
    """Return the criteria of a line; a line of unknown checks has those of several checks."""
    checks = dict.fromkeys(found.check for _, found in line.members)
    return ", ".join(dict.fromkeys(filter(None, map(score.criteria_of, checks))))


def rest(score: Score) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """Yield title, reason and (ids, text) of all other criteria; those that are not judged by their reason."""
    for status, title in REST.items():
        mine = [each.criterion for each in score.rows if each.status == status]
        for why, same in by_key((each.why, each) for each in mine).items():
            words = [(each.name, each.text + (f" ({each.differs})" if each.differs else "")) for each in same]
            yield f"{title} ({sum(each.count for each in same)})", why, words
