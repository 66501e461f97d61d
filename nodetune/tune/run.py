"""Tune a subject: the trials are kept while it runs, the result and its proposal when there is a decision."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from nodetune.foundation import UserError, file_io, text
from nodetune.foundation.exit_codes import INCOMPLETE, INTERRUPTED, OK
from nodetune.foundation.stage_output import Phase, Show
from nodetune.statistics.thresholds import MAX_PAIRS
from nodetune.tune import document, search, space, study
from nodetune.tune.journal import Journal, JournalError
from nodetune.tune.model import Bench, BenchError, Trial
from nodetune.tune.request import StudyRequest
from nodetune.tune.trials import OnTrial


@dataclass(frozen=True)
class Tuned:
    """The result of a tuning. `document` is None if it ended with a `problem`; `site` is the file of the proposal."""

    saved: Path
    trials: Path
    count: int
    document: Mapping[str, Any] | None = None
    problem: str = ""
    site: Path | None = None

    @property
    def decided(self) -> bool:
        return self.document is not None and self.document["state"] in (study.ACCEPTED, study.NOTHING)

    @property
    def code(self) -> int:
        """0 for a decision, 3 if there is none, 130 after Ctrl-C."""
        if self.decided:
            return OK
        return INTERRUPTED if self.document and self.document["state"] == study.STOPPED else INCOMPLETE


STAGES = 2
"""Screening and confirmation."""


def run(request: StudyRequest, subject: str, make: Callable[[], Bench], show: Show) -> Tuned:
    """Tune what `make` returns. Raise UserError before anything is measured."""
    saved = request.file(subject)
    site, trials = saved.with_suffix(".site.yml"), saved.with_name(f"{saved.name}.trials")
    _refuse_to_overwrite((saved, site), trials, resume=request.resume)
    file_io.check(saved)
    began = time.monotonic()
    try:
        bench = make()
        _say_expected(bench, time.monotonic() - began, request.budget, show)
        journal = Journal(trials, document.header(bench), resume=request.resume)
    except (BenchError, JournalError) as problem:
        raise UserError(str(problem)) from None
    try:
        with show.phase("tune", 1, request.budget, STAGES) as phase:
            report = _trial_reporter(phase, subject)
            outcome = study.tune(bench, request.budget, known=list(journal.known), keep=journal.append, report=report)
            phase.done(subject, "ok" if outcome.state in (study.ACCEPTED, study.NOTHING) else outcome.state)
    except (BenchError, JournalError) as problem:
        return _save(Tuned(saved, trials, journal.count, problem=str(problem)), show)
    finally:
        journal.close()
    result = document.document(bench, outcome, request.budget)
    if request.history:
        from nodetune.history import keeping  # most runs have no history

        measured = document.medians(bench, outcome)
        of_hosts = [(host, None, measured) for host in result["provenance"].get("hosts", ())]
        keeping.keep(request.history, show, measured=of_hosts)
    proposed = site if result["state"] == study.ACCEPTED and result["proposal"] else None
    return _save(Tuned(saved, trials, len(result["trials"]), result, site=proposed), show)


def _trial_reporter(phase: Phase, subject: str) -> OnTrial:
    """Return what shows each trial as a step, and the first of its kind as a stage."""
    begun: set[str] = set()

    def report(stage: str, trial: Trial) -> None:
        if stage not in begun:
            begun.add(stage)
            phase.stage(stage, 1)
        state = trial.banned or trial.failed or trial.disturbed
        phase.step(subject, f"{space.in_words(dict(trial.setting))}{': ' + text.plain(state, 100) if state else ''}")

    return report


def _save(tuned: Tuned, show: Show) -> Tuned:
    """Write the result of a decision, then remove trials that are of no more use: a file without any is in the way."""
    if tuned.decided and tuned.document:
        with file_io.output(tuned.saved) as stream:
            stream.write(json.dumps(tuned.document, indent=1) + "\n")
        show.note(f"written to {tuned.saved}")
    if tuned.site and tuned.document:
        with file_io.output(tuned.site) as stream:
            write_site(stream, tuned.document)
    if tuned.decided or not tuned.count:
        tuned.trials.unlink(missing_ok=True)
    return tuned


def _say_expected(bench: Bench, first: float, budget: float, show: Show) -> None:
    """Print how long it may take, based on the time of the first measurement, and warn if the budget is too small."""
    settings = len(space.first(bench))
    if not settings:
        return  # nothing is measured, and the decision says why
    count = search.expected(bench) + study.FINALISTS * 2 * MAX_PAIRS
    words = f"{text.count(settings, 'setting')} to try, up to {count} trials"
    more = f", longer than --budget ({text.span(budget)})" if count * first > budget else ""
    show.note(f"{words}: at most about {text.span(count * first)}{more}")


def write_site(stream: TextIO, result: Mapping[str, Any]) -> None:
    """Write the proposal as a site file. Raise UserError if there is none."""
    import yaml

    if not result["proposal"]:
        raise UserError(f"{result['state']}: no proposal for a site file")
    stream.write(f"# {text.plain(result['subject'])}: {text.plain(result['reason'], 600)}\n")
    yaml.safe_dump(json.loads(json.dumps(result["proposal"])), stream, sort_keys=False)


def _refuse_to_overwrite(results: Sequence[Path], trials: Path, *, resume: bool) -> None:
    for path in results:
        if path.exists():
            raise UserError(f"{path}: exists: move it away, or give another file with --save")
    if trials.exists() and not resume:
        raise UserError(
            f"{trials}: the trials of an interrupted tuning: use --resume to continue it, or delete the file"
        )
    if resume and not trials.exists():
        raise UserError(f"{trials}: does not exist: nothing to resume; remove --resume")
