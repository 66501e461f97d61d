"""The result of a tuning as JSON data (schema nodetune.tuning/1), and read back."""

import json
import statistics
from pathlib import Path
from typing import Any

from nodetune.foundation import json_document, schemas, text
from nodetune.foundation.json_document import DocumentError, head
from nodetune.tune.confirm import CaseResult, Confirmation
from nodetune.tune.model import DEFAULT, Bench, Case
from nodetune.tune.study import TuningOutcome

SCHEMA = "nodetune.tuning/1"
LARGEST = 64 << 20
STALE = {"driver": ("gpu.driver_version", "driver"), "kernel": ("host.kernel", "kernel")}
"""Key of the provenance → the fact of a host that must still be equal, and its description."""


def document(bench: Bench, outcome: TuningOutcome, budget: float) -> dict[str, Any]:
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
            {"name": parameter.name, "choices": list(parameter.choices), "source": parameter.source}
            for parameter in bench.parameters
        ],
        "cases": [_case(case) for case in bench.cases],
        "confirmations": [_confirmation(confirmation) for confirmation in outcome.confirmations],
        "resolved": dict(outcome.resolved),
        "dropped": [{"setting": dict(setting), "reason": why} for setting, why in outcome.dropped.items()],
        "trials": [
            {"phase": phase, **vars(trial), "setting": dict(trial.setting), "seconds": round(trial.seconds, 3)}
            for phase, trial in outcome.trials
        ],
    }


def _proposal(bench: Bench, outcome: TuningOutcome) -> dict[str, Any]:
    """Return what the bench proposes, with checks that say when the result no longer holds."""
    proposal, provenance = dict(bench.proposal(outcome.setting)), bench.provenance()
    if not proposal:
        return proposal
    versions = {name: _only(provenance.get(name)) for name in STALE}
    stale_checks = [
        stale(bench.subject, *STALE[name], version, {"equals": version})
        for name, version in versions.items()
        if version
    ]
    return {**proposal, "add": [*proposal.get("add", ()), *stale_checks]}


def _only(value: Any) -> str:
    """Return the version that all hosts have; empty if they differ or it is unknown."""
    versions = value if isinstance(value, list) else [value]
    return versions[0] if len(versions) == 1 and isinstance(versions[0], str) else ""


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


def medians(bench: Bench, outcome: TuningOutcome) -> dict[str, float]:
    """Return the figures of a tuning for the history: the median of each case, of the default and of the setting that was accepted."""
    wanted = {"default": DEFAULT, **({"tuned": outcome.setting} if outcome.accepted else {})}
    figures: dict[str, float] = {}
    for name, setting in wanted.items():
        trials = [trial.values for _, trial in outcome.trials if trial.counts and trial.setting == setting]
        for case in bench.cases:
            if runs := [values[case.id] for values in trials if case.id in values]:
                figures[f"tune.{bench.subject}.{text.plain(case.id)}/{name}"] = statistics.median(runs)
    return figures


def header(bench: Bench) -> dict[str, Any]:
    """Return what the trials of a journal are trials of: they go on only where all of it is the same."""
    return {
        "version": 1,
        "subject": bench.subject,
        "parameters": {parameter.name: list(parameter.choices) for parameter in bench.parameters},
        "cases": [case.id for case in bench.cases],
        "provenance": dict(bench.provenance()),
    }


def _case(case: Case) -> dict[str, Any]:
    data: dict[str, Any] = {"id": case.id, "unit": case.unit, "better": case.better, "objective": case.objective}
    data |= {} if case.judged else {"judged": False}
    return data if case.weight == 1 else {**data, "weight": round(case.weight, 4)}


def _confirmation(confirmation: Confirmation) -> dict[str, Any]:
    return {
        "setting": dict(confirmation.setting),
        "gain": confirmation.ratio,
        "interval": [confirmation.low, confirmation.high],
        "p": confirmation.p,
        "runs": len(confirmation.cases[0].before),
        "refused": confirmation.refused,
        "cases": [_result(result) for result in confirmation.cases],
    }


def _result(result: CaseResult) -> dict[str, Any]:
    return {
        **_case(result.case),
        "default": {"median": statistics.median(result.before), "runs": list(result.before)},
        "tuned": {"median": statistics.median(result.after), "runs": list(result.after)},
        "gain": result.ratio,
        "interval": [result.low, result.high],
        "resolution": result.resolution,
        "p": result.p,
    }


def read(path: Path) -> dict[str, Any]:
    """Read the result of a tuning. Raise DocumentError or OSError."""
    result = json_document.read(path, SCHEMA, LARGEST, "give a file that nodetune tune has written")
    for fault in schemas.violations("tuning", result):
        where = text.plain("/".join(map(str, fault.absolute_path)) or "the document", 100)
        raise DocumentError(f"{path}: damaged: {where}: {text.plain(fault.message, 100)}")
    return result


def chance(p: float) -> str:
    """Return a p value with four digits."""
    return f"{p:.4f}" if p >= 0.00005 else "< 0.0001"
