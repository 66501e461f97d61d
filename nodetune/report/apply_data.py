"""What an apply, a rehearsal or a rollback came to, as JSON data (schemas nodetune.apply/1, nodetune.rehearsal/1 …)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nodetune.apply import Done
from nodetune.gain import Gain
from nodetune.model import Finding, HostResult
from nodetune.playbook import Outcome
from nodetune.report import apply_gain
from nodetune.report.apply_text import tally
from nodetune.report.data import head

APPLY_SCHEMA = "nodetune.apply/1"
REHEARSAL_SCHEMA = "nodetune.rehearsal/1"
ROLLBACK_SCHEMA = "nodetune.rollback/1"


def outcomes(done: Iterable[Done]) -> list[dict[str, Any]]:
    """The steps with what became of each."""
    return [
        {
            "host": each.step.host,
            "check": each.step.check,
            "outcome": each.outcome,
            "reason": each.reason,
            "disruption": each.step.fix.disruption,
            "before": each.step.before,
            "after": each.step.after,
        }
        for each in done
    ]


def applied(
    run: str | None,
    done: Sequence[Done],
    by_hand: Mapping[str, tuple[Finding, list[str]]],
    results: Iterable[HostResult],
    dead: Mapping[str, Sequence[Mapping[str, Any]]],
    drained: Mapping[str, str],
    gain: Gain | None,
) -> dict[str, Any]:
    """`run` is None where nothing had to be done; `dead` holds the runs that were found interrupted, by host, `drained`
    why hosts that this run drained are not back in service, and `gain` what measuring before and after has shown.
    """
    return {
        **head(APPLY_SCHEMA),
        "run": run,
        "steps": outcomes(done),
        "by_hand": [
            {"check": check, "hosts": hosts, "manual": found.manual} for check, (found, hosts) in by_hand.items()
        ],
        "not_reached": not_reached(results),
        "interrupted": [{"host": host, **each} for host, found in dead.items() for each in found],
        "left_drained": [{"host": host, "reason": reason} for host, reason in drained.items()],
        "verified": apply_gain.document(gain),
        "summary": tally(done),
    }


def rehearsed(
    diffs: Mapping[str, Sequence[str]],
    problems: Mapping[str, Sequence[Mapping[str, Any]]],
    failed: Mapping[str, str],
    results: Iterable[HostResult],
) -> dict[str, Any]:
    """For each host the unified diffs of a check mode run, what would go wrong, and why the run itself failed there."""
    hosts = [
        {"name": host, "diffs": list(texts), "problems": list(problems.get(host, ())), "failed": failed.get(host, "")}
        for host, texts in diffs.items()
    ]
    return {**head(REHEARSAL_SCHEMA), "hosts": hosts, "not_reached": not_reached(results)}


def rolled_back(run: str | None, outcomes: Mapping[str, Outcome]) -> dict[str, Any]:
    """For each host what was taken back, what was left alone because someone changed it since, and what went wrong."""
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
    return {**head(ROLLBACK_SCHEMA), "run": run, "hosts": hosts}


def not_reached(results: Iterable[HostResult]) -> list[dict[str, str]]:
    return [{"name": each.host, "state": each.state, "message": each.message} for each in results if each.state != "ok"]
