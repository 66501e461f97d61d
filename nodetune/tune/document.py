"""The result of a tuning as JSON data (schema nodetune.tuning/1), and read back."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

from nodetune.foundation import UserError, file_io, schemas, text
from nodetune.foundation.json_document import head
from nodetune.tune.confirm import CaseResult, Confirmation
from nodetune.tune.model import DEFAULT, Bench, Case
from nodetune.tune.study import Outcome

SCHEMA = "nodetune.tuning/1"
LARGEST = 64 << 20
STALE = {"driver": ("gpu.driver_version", "driver"), "kernel": ("host.kernel", "kernel")}
"""Key of the provenance → the fact of a host that must still be equal, and its description."""


class TuningError(UserError):
    """An invalid tuning result; the text is one line: file, fault, and what to do."""


def document(bench: Bench, outcome: Outcome, budget: float) -> dict[str, Any]:
    """Return the document of a tuning: the decision, its evidence, and its conditions."""
    return {
        **head(SCHEMA),
        "subject": bench.subject,
        "state": outcome.state,
        "reason": outcome.reason,
        "setting": dict(outcome.setting),
        "proposal": _proposal(bench, outcome) if outcome.accepted else {},
        "provenance": json.loads(json.dumps(bench.provenance())),
        "budget": budget,
        "seconds": round(outcome.seconds, 1),
        "parameters": [
            {"name": each.name, "choices": list(each.choices), "source": each.source} for each in bench.parameters
        ],
        "cases": [_case(each) for each in bench.cases],
        "confirmations": [_confirmation(each) for each in outcome.confirmations],
        "resolved": dict(outcome.resolved),
        "dropped": [{"setting": dict(setting), "reason": why} for setting, why in outcome.dropped.items()],
        "trials": [
            {"phase": phase, **vars(trial), "setting": dict(trial.setting), "seconds": round(trial.seconds, 3)}
            for phase, trial in outcome.trials
        ],
    }


def _proposal(bench: Bench, outcome: Outcome) -> dict[str, Any]:
    """Return what the bench proposes, with checks that say when the result no longer holds."""
    found, provenance = dict(bench.proposal(outcome.setting)), bench.provenance()
    if not found:
        return found
    versions = {name: _only(provenance.get(name)) for name in STALE}
    several = [
        stale(bench.subject, *STALE[name], version, {"equals": version})
        for name, version in versions.items()
        if version
    ]
    return {**found, "add": [*found.get("add", ()), *several]}


def _only(value: Any) -> str:
    """Return the version that all hosts have; empty if they differ or it is unknown."""
    several = value if isinstance(value, list) else [value]
    return several[0] if len(several) == 1 and isinstance(several[0], str) else ""


def stale(subject: str, fact: str, what: str, version: str, accept: Any, last: str = "") -> dict[str, Any]:
    """Return a check of a site file that fails once a result no longer holds. `last`: of its id, where there are several."""
    return {
        "id": f"site-tuning-{subject}-stale{last}",
        "title": f"The tuning of {subject} is for another {what}",
        "fact": fact,
        "accept": accept,
        "severity": "info",
        "manual": f"Tune again (nodetune tune {subject}) and replace the proposal, or remove both from the site file.",
        "why": f"The result of nodetune tune {subject} is valid for {what} {version}: tune again.",
    }


def medians(bench: Bench, outcome: Outcome) -> dict[str, float]:
    """Return the figures of a tuning for the history: the median of each case, of the default and of the setting that was accepted."""
    wanted = {"default": DEFAULT, **({"tuned": outcome.setting} if outcome.accepted else {})}
    found: dict[str, float] = {}
    for name, setting in wanted.items():
        trials = [trial.values for _, trial in outcome.trials if trial.counts and trial.setting == setting]
        for case in bench.cases:
            if runs := [values[case.id] for values in trials if case.id in values]:
                found[f"tune.{bench.subject}.{text.plain(case.id)}/{name}"] = statistics.median(runs)
    return found


def header(bench: Bench) -> dict[str, Any]:
    """Return what the trials of a journal are trials of: they go on only where all of it is the same."""
    return {
        "version": 1,
        "subject": bench.subject,
        "parameters": {each.name: list(each.choices) for each in bench.parameters},
        "cases": [each.id for each in bench.cases],
        "provenance": dict(bench.provenance()),
    }


def _case(case: Case) -> dict[str, Any]:
    found: dict[str, Any] = {"id": case.id, "unit": case.unit, "better": case.better, "objective": case.objective}
    found |= {} if case.judged else {"judged": False}
    return found if case.weight == 1 else {**found, "weight": round(case.weight, 4)}


def _confirmation(found: Confirmation) -> dict[str, Any]:
    return {
        "setting": dict(found.setting),
        "gain": found.ratio,
        "interval": [found.low, found.high],
        "p": found.p,
        "runs": len(found.cases[0].before),
        "refused": found.refused,
        "cases": [_result(each) for each in found.cases],
    }


def _result(found: CaseResult) -> dict[str, Any]:
    return {
        **_case(found.case),
        "default": {"median": statistics.median(found.before), "runs": list(found.before)},
        "tuned": {"median": statistics.median(found.after), "runs": list(found.after)},
        "gain": found.ratio,
        "interval": [found.low, found.high],
        "resolution": found.resolution,
        "p": found.p,
    }


def read(path: Path) -> dict[str, Any]:
    """Read the result of a tuning. Raise TuningError."""
    try:
        found = json.loads(file_io.read(path, LARGEST))
    except OSError as problem:
        raise TuningError(f"{path}: {(problem.strerror or str(problem)).lower()}") from None
    except (ValueError, RecursionError):
        raise TuningError(f"{path}: not JSON: give a file that nodetune tune has written") from None
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise TuningError(f"{path}: not a tuning result (schema {SCHEMA}): give a file that nodetune tune has written")
    for fault in schemas.violations("tuning", found):
        where = text.plain("/".join(map(str, fault.absolute_path)) or "the document", 100)
        raise TuningError(f"{path}: damaged: {where}: {text.plain(fault.message, 100)}")
    return found


def chance(p: float) -> str:
    """Return a p value with four digits."""
    return f"{p:.4f}" if p >= 0.00005 else "< 0.0001"
