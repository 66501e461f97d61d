"""A verify as JSON data (schema nodetune.verify/1), read back for comparing, and the file of a baseline."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nodetune.api import conclusion_json
from nodetune.foundation import json_document, text
from nodetune.foundation.json_document import head
from nodetune.verify import baseline, diagnosis, efficiency, figures
from nodetune.verify.compare import LEVEL, FigureChange
from nodetune.verify.conclude import concluded
from nodetune.verify.model import (
    PASS,
    STATUSES,
    UNKNOWN,
    Figure,
    Limit,
    Unmeasured,
    Verdict,
    VerifyFinding,
)
from nodetune.verify.run import HostVerification
from nodetune.verify.scaling import Scaling
from nodetune.verify.suites import SuiteRequest

VERIFY_SCHEMA = "nodetune.verify/1"
COMPARE_SCHEMA = "nodetune.compare/1"
LARGEST = 256 << 20
WRITE = "save one with nodetune verify --format json -o FILE"


def document(
    verifications: Sequence[HostVerification], wanted: SuiteRequest, asked: str, gpu_hour: float | None = None
) -> dict[str, Any]:
    """Return the document of a verify.

    `asked`: the options that name the hosts and how they are judged, for the commands that reproduce a figure;
    `gpu_hour`: the price of one hour of a GPU.
    """
    told = head(VERIFY_SCHEMA)
    return {
        **told,
        "suite": "" if wanted.only else wanted.suite,
        "runs": wanted.repeat,
        "env": dict(wanted.env),
        "hosts": [_host(each, asked, wanted, gpu_hour) for each in verifications],
        "summary": summary(verifications),
        **conclusion_json.members(concluded(verifications, told["time"])),
    }


def summary(verifications: Sequence[HostVerification]) -> dict[str, Any]:
    """Count hosts, statuses and findings."""
    statuses = [status for verification in verifications for status in verification.statuses]
    return {
        "hosts": len(verifications),
        "measured": sum(bool(each.verdicts) for each in verifications),
        "statuses": {status: statuses.count(status) for status in STATUSES},
        "findings": sum(len(each.findings) for each in verifications),
    }


def _host(verification: HostVerification, asked: str, wanted: SuiteRequest, gpu_hour: float | None) -> dict[str, Any]:
    return {
        "name": verification.host,
        "state": verification.state,
        "message": verification.message,
        "seconds": round(verification.seconds, 3),
        "machine": verification.machine.data(),
        "measurements": [_verdict(each, asked, wanted) for each in verification.verdicts]
        + [_unmeasured(each) for each in verification.unmeasured],
        "findings": [_finding(each) for each in verification.findings],
        "notes": list(verification.notes),
        "others": {name: list(each) for name, each in verification.others.items()},
        "worth": efficiency.document(verification.verdicts, gpu_hour),
    }


def _verdict(verdict: Verdict, asked: str, wanted: SuiteRequest) -> dict[str, Any]:
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
        "disturbed": list(figure.run_disturbances),
        "about": dict(figure.about),
        "expected": dict(vars(verdict.expected)) if verdict.expected else None,
        "limit": _limit(verdict.limit, verdict.fraction),
        "again": list(verdict.again),
        "suspect": verdict.suspect,
        "reason": verdict.reason,
        "reproduce": diagnosis.command(figure, asked, wanted),
    }


def _unmeasured(missing: Unmeasured) -> dict[str, Any]:
    names = ("measurement", "metric", "subject", "status", "reason")
    return {name: getattr(missing, name) for name in names}


def _limit(limit: Limit | None, fraction: float | None) -> dict[str, Any] | None:
    return {"value": limit.value, "what": limit.what, "fraction": fraction} if limit else None


def _finding(found: VerifyFinding) -> dict[str, Any]:
    return {"status": found.status, "title": found.title, "subjects": list(found.subjects), "next": found.next}


def kept(verifications: Iterable[HostVerification], unproven: bool = True) -> dict[str, Any]:
    """Return the document of a baseline: all figures measured here that are not below a target, of undisturbed hosts.

    `unproven`: whether also those that were compared with nothing.
    """
    good = (PASS, UNKNOWN) if unproven else (PASS,)
    calm = [verification for verification in verifications if not verification.disturbed]
    every = [
        (verification.machine, each.figure)
        for verification in calm
        for each in verification.verdicts
        if each.status in good
    ]
    return {**head(baseline.SCHEMA), "figures": baseline.document(every)}


@dataclass(frozen=True)
class MeasuredResult:
    """A saved result: its figures, and the state of each host that was not measured."""

    figures: Sequence[Figure]
    unmeasured: Mapping[str, str]


def read(path: Path) -> MeasuredResult:
    """Read a saved result. Raise DocumentError or OSError."""
    return result_of(json_document.read(path, VERIFY_SCHEMA, LARGEST, WRITE))


def is_result(data: Any) -> bool:
    """Tell whether a document is a result of verify."""
    return isinstance(data, dict) and data.get("schema") == VERIFY_SCHEMA


def result_of(data: Mapping[str, Any]) -> MeasuredResult:
    """Return what a result document says."""
    hosts = data.get("hosts")
    known = [host for host in hosts if isinstance(host, dict)] if isinstance(hosts, list) else []
    states = {text.plain(host.get("name", "")): text.plain(host.get("state", "ok")) for host in known}
    return MeasuredResult(
        figures.merged(found for host in known for found in _figures(host)),
        {host: state for host, state in states.items() if state != "ok"},
    )


def _figures(host: Mapping[str, Any]) -> Iterator[Figure]:
    """Yield the valid figures of one host."""
    name, given = text.plain(host.get("name", "")), host.get("measurements")
    for each in given if isinstance(given, list) else ():
        runs = each.get("runs") if isinstance(each, dict) else None
        for number, run in enumerate(runs if isinstance(runs, list) else ()):
            found = figures.read(name, {**each, "samples": run})
            if isinstance(found, Figure):
                yield replace(found, disturbed=(_disturbed(each, number),))


def _disturbed(measured: Mapping[str, Any], number: int) -> str:
    """Return what disturbed that run; older results do not have it."""
    told = measured.get("disturbed")
    return text.plain(told[number]) if isinstance(told, list) and number < len(told) else ""


def compared(
    changes: Sequence[FigureChange],
    missing: Sequence[Figure] = (),
    lost: Mapping[str, tuple[str, str]] | None = None,
    scaled: Sequence[Scaling] = (),
) -> dict[str, Any]:
    """Return the document of a comparison. Changes, intervals and resolution are fractions of the value before."""
    return {
        **head(COMPARE_SCHEMA),
        "level": LEVEL,
        "changes": [
            {
                **_place(each.before),
                "unit": each.before.unit,
                "before": each.before.value,
                "after": each.after.value,
                "runs": [len(each.before.by_run), len(each.after.by_run)],
                "disturbed": [each.before.lost, each.after.lost],
                "status": each.status,
                "change": each.change,
                "shift": each.shift,
                "interval": list(each.interval) if each.interval else None,
                "smallest_seen": each.smallest,
            }
            for each in changes
        ],
        "states": [{"host": host, "before": was, "after": now} for host, (was, now) in (lost or {}).items()],
        "missing": [_place(each) for each in missing],
        "scaling": [
            {"before": _scaled(each.before), "after": _scaled(each.after), "efficiency": each.efficiency}
            for each in scaled
        ],
    }


def _scaled(figure: Figure) -> dict[str, Any]:
    return {**_place(figure), "unit": figure.unit, "value": figure.value}


def _place(figure: Figure) -> dict[str, Any]:
    return {
        "host": figure.host,
        "measurement": figure.measurement,
        "metric": figure.metric,
        "subject": figure.subject,
        "conditions": figures.conditions(figure),
    }
