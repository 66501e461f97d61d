"""The results of an apply, a dry run or a rollback as JSON data (schemas nodetune.apply/1, nodetune.rehearsal/1 …)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from nodetune.api.model import HostResult
from nodetune.audit.document import not_reached
from nodetune.foundation.exit_codes import OK
from nodetune.foundation.json_document import head
from nodetune.remediation.ansible.events import Outcome
from nodetune.remediation.outcomes import StepOutcome, tally
from nodetune.remediation.plan_document import manual, unknown
from nodetune.verify import document as verify
from nodetune.verify.before_after import BeforeAfterResult
from nodetune.verify.compare import LEVEL

APPLY_SCHEMA = "nodetune.apply/1"
DRY_RUN_SCHEMA = "nodetune.rehearsal/1"
ROLLBACK_SCHEMA = "nodetune.rollback/1"


def outcomes(done: Iterable[StepOutcome]) -> list[dict[str, Any]]:
    """Return the outcome of each fix as data."""
    return [asdict(each) for each in done]


@dataclass(frozen=True)
class ApplyReport:
    """The result of an apply.

    `run` is None if there was nothing to do. `dead`: the earlier runs that were interrupted, by host; `drained`: why hosts
    that this run drained are not back in service; `verified`: what --verify measured; `stopped`: why it ended early.
    """

    run: str | None
    done: Sequence[StepOutcome]
    dead: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    drained: Mapping[str, str] = field(default_factory=dict)
    verified: BeforeAfterResult | None = None
    code: int = OK
    stopped: str = ""


def applied(report: ApplyReport, results: Sequence[HostResult]) -> dict[str, Any]:
    """Return the document of an apply."""
    return {
        **head(APPLY_SCHEMA),
        "run": report.run,
        "steps": outcomes(report.done),
        "by_hand": manual(results),
        "not_reached": not_reached(results),
        "unknown": unknown(results),
        "interrupted": [{"host": host, **each} for host, found in report.dead.items() for each in found],
        "left_drained": [{"host": host, "reason": reason} for host, reason in report.drained.items()],
        "verified": _before_after(report.verified),
        "summary": tally(report.done),
    }


def dry_run(
    diffs: Mapping[str, Sequence[str]],
    problems: Mapping[str, Sequence[Mapping[str, Any]]],
    failed: Mapping[str, str],
    results: Sequence[HostResult],
) -> dict[str, Any]:
    """Return for each host the diffs of a check mode run, the problems, and why the run itself failed."""
    hosts = [
        {"name": host, "diffs": list(texts), "problems": list(problems.get(host, ())), "failed": failed.get(host, "")}
        for host, texts in diffs.items()
    ]
    return {**head(DRY_RUN_SCHEMA), "hosts": hosts, "not_reached": not_reached(results), "unknown": unknown(results)}


def rolled_back(made: Sequence[str], outcomes: Mapping[str, Outcome]) -> dict[str, Any]:
    """Return for each host what was undone, what was left alone because someone changed it, and the problems.

    `made` are the rollbacks that were recorded; none in a dry run.
    """
    hosts = [
        {
            "name": host,
            "state": each.state,
            "message": each.message,
            "done": [done["label"] for done in each.gathered("done") if done.get("changed")],
            "refused": each.gathered("refused"),
            "problems": each.gathered("problems"),
        }
        for host, each in outcomes.items()
    ]
    return {**head(ROLLBACK_SCHEMA), "run": made[-1] if made else None, "runs": list(made), "hosts": hosts}


def _before_after(verified: BeforeAfterResult | None) -> dict[str, Any] | None:
    """Return the part `verified` of an apply, or None if nothing was measured. Fractions as in nodetune.compare/1."""
    if verified is None:
        return None
    return {
        "suite": verified.wanted.suite,
        "runs": verified.wanted.repeat,
        "level": LEVEL,
        "changes": verify.compared(verified.changes)["changes"],
        "not_measured": [
            {"host": each.host, "when": each.when, "state": each.state, "message": each.message}
            for each in verified.missing
        ],
        "short": len(verified.short) + len(verified.findings),
    }
