"""A verify as JSON data (schema nodetune.verify/1), read back for comparing, and the file of a baseline."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nodetune import show
from nodetune.proof import Proof
from nodetune.report.data import head
from nodetune.verdict import (
    STATUSES,
    Expectation,
    Figure,
    Finding,
    Limit,
    Unmeasured,
    Verdict,
    baseline,
    figures,
    suspects,
)
from nodetune.verdict.compare import LEVEL, Change
from nodetune.verdict.suites import Wanted

VERIFY_SCHEMA = "nodetune.verify/1"
COMPARE_SCHEMA = "nodetune.compare/1"
LARGEST = 256 << 20


class BadResult(ValueError):
    """A result file that is not one; the text is one line: file, what, and what to do."""


def document(proofs: Sequence[Proof], wanted: Wanted, asked: str) -> dict[str, Any]:
    """`asked`: the options that name the hosts and how they are judged, for the commands that reproduce a figure."""
    return {
        **head(VERIFY_SCHEMA),
        "suite": "" if wanted.only else wanted.suite,
        "runs": wanted.runs,
        "env": dict(wanted.env),
        "hosts": [_host(each, asked, wanted) for each in proofs],
        "summary": summary(proofs),
    }


def summary(proofs: Sequence[Proof]) -> dict[str, Any]:
    """Counts over all hosts."""
    statuses = [status for proof in proofs for status in proof.statuses]
    return {
        "hosts": len(proofs),
        "measured": sum(bool(each.verdicts) for each in proofs),
        "statuses": {status: statuses.count(status) for status in STATUSES},
        "findings": sum(len(each.findings) for each in proofs),
    }


def _host(proof: Proof, asked: str, wanted: Wanted) -> dict[str, Any]:
    return {
        "name": proof.host,
        "state": proof.state,
        "message": proof.message,
        "seconds": round(proof.seconds, 3),
        "machine": proof.machine.data(),
        "measurements": [_verdict(each, asked, wanted) for each in proof.verdicts]
        + [_unmeasured(each) for each in proof.unmeasured],
        "findings": [_finding(each) for each in proof.findings],
        "notes": list(proof.notes),
    }


def _verdict(verdict: Verdict, asked: str, wanted: Wanted) -> dict[str, Any]:
    figure = verdict.figure
    return {
        "measurement": figure.measurement,
        "metric": figure.metric,
        "subject": figure.subject,
        "status": verdict.status,
        "value": figure.value,
        "unit": figure.unit,
        "better": figure.better,
        "runs": [list(run) for run in figure.runs],
        "about": dict(figure.about),
        "expected": _expectation(verdict.expected),
        "limit": _limit(verdict.limit, verdict.fraction),
        "again": list(verdict.again),
        "suspect": verdict.suspect,
        "reason": verdict.reason,
        "reproduce": suspects.command(figure, asked, wanted),
    }


def _unmeasured(missing: Unmeasured) -> dict[str, Any]:
    return {
        "measurement": missing.measurement,
        "metric": missing.metric,
        "subject": missing.subject,
        "status": missing.status,
        "reason": missing.reason,
    }


def _expectation(expected: Expectation | None) -> dict[str, Any] | None:
    return dict(vars(expected)) if expected else None


def _limit(limit: Limit | None, fraction: float | None) -> dict[str, Any] | None:
    return {"value": limit.value, "what": limit.what, "fraction": fraction} if limit else None


def _finding(found: Finding) -> dict[str, Any]:
    return {"status": found.status, "title": found.title, "subjects": list(found.subjects), "next": found.next}


def kept(proofs: Iterable[Proof]) -> dict[str, Any]:
    """The document of a baseline: all that was measured here, except what fell short of something."""
    every = [(proof.machine, each.figure) for proof in proofs for each in proof.verdicts if each.status != "short"]
    return {**head(baseline.SCHEMA), "figures": baseline.document(every)}


def read(path: Path) -> list[Figure]:
    """The figures of a saved result. Raises BadResult, OSError."""
    if path.stat().st_size > LARGEST:
        raise BadResult(f"{path}: larger than any result")
    try:
        data = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError):
        raise BadResult(f"{path}: not JSON: save one with nodetune verify --format json -o FILE") from None
    if not isinstance(data, dict) or data.get("schema") != VERIFY_SCHEMA:
        raise BadResult(f"{path}: not a {VERIFY_SCHEMA} document: save one with nodetune verify --format json -o FILE")
    hosts = data.get("hosts")
    known = [host for host in hosts if isinstance(host, dict)] if isinstance(hosts, list) else []
    return figures.merged(found for host in known for found in _figures(host))


def _figures(host: Mapping[str, Any]) -> Iterator[Figure]:
    """Those of one host; what is none is passed over."""
    name, given = show.plain(host.get("name", "")), host.get("measurements")
    for each in given if isinstance(given, list) else ():
        runs = each.get("runs") if isinstance(each, dict) else None
        for run in runs if isinstance(runs, list) else ():
            found = figures.read(name, {**each, "samples": run})
            if isinstance(found, Figure):
                yield found


def compared(changes: Sequence[Change]) -> dict[str, Any]:
    """Changes, intervals and what could have been seen are fractions of the value before."""
    return {
        **head(COMPARE_SCHEMA),
        "level": LEVEL,
        "changes": [
            {
                "host": each.before.host,
                "measurement": each.before.measurement,
                "metric": each.before.metric,
                "subject": each.before.subject,
                "conditions": figures.conditions(each.before),
                "unit": each.before.unit,
                "before": each.before.value,
                "after": each.after.value,
                "runs": [len(each.before.runs), len(each.after.runs)],
                "status": each.status,
                "change": each.change,
                "interval": list(each.interval) if each.interval else None,
                "smallest_seen": each.smallest,
            }
            for each in changes
        ],
    }
