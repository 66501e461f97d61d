"""A search as JSON data (schema nodetune.find-slow/1)."""

from collections.abc import Sequence
from math import exp
from typing import Any

from nodetune.api import conclusion_json
from nodetune.foundation.exit_codes import INCOMPLETE, OK, TOO_SLOW
from nodetune.foundation.json_document import head
from nodetune.statistics.likelihood import BAD
from nodetune.verify.find_slow import labels
from nodetune.verify.find_slow.conclude import concluded
from nodetune.verify.find_slow.model import Culprit, Doubt, GroupRun, Part
from nodetune.verify.find_slow.run import SlowSearch

SCHEMA = "nodetune.find-slow/1"


def document(search: SlowSearch, asked: Sequence[str]) -> dict[str, Any]:
    """Return the document. `asked`: the options that select the hosts, for the proposed commands."""
    fleet, result, base = search.fleet, search.result, head(SCHEMA)
    return {
        **base,
        "hosts": [
            {"name": name, "leaf": fleet.names[domain]} for name, domain in zip(fleet.nodes, fleet.domains, strict=True)
        ],
        "not_measured": [
            {"name": host.host, "state": host.state, "message": host.message} for host in search.unreached
        ],
        "culprits": [_culprit(culprit, search, asked) for culprit in result.culprits],
        "alone": [
            {
                "host": straggler.host,
                "subject": straggler.subject,
                "metric": straggler.metric,
                "loss": round(straggler.loss, 4),
                "runs": straggler.runs,
                "chance": straggler.chance,
                "at_least": straggler.floor.bound if straggler.floor else None,
            }
            for straggler in search.stragglers
        ],
        "causes": {host: list(lines) for host, lines in search.causes.items()},
        "doubts": [_doubt(doubt, search) for doubt in result.doubts],
        "whole": {
            "hosts": [fleet.nodes[node] for node in result.joint_nodes],
            "figure": result.joint_figure,
            "fault": result.joint_fault,
            "short": search.shortfall,
        },
        "level": result.level,
        "unit": search.unit,
        "noise": result.noise,
        "falls": list(result.falls),
        "rounds": [
            {"kind": round_.kind, "runs": len(round_.groups), "seconds": round(seconds, 3)}
            for round_, seconds in zip(result.rounds, search.seconds, strict=False)
        ],
        "runs": [_run(run, search) for run in result.runs],
        **conclusion_json.members(concluded(search, base["time"])),
    }


def _part(part: Part, search: SlowSearch) -> dict[str, Any]:
    return {
        "kind": part.kind,
        "name": labels.name(part, search.fleet),
        "hosts": search.hosts(part),
        "number": part.rail,
    }


def _culprit(culprit: Culprit, search: SlowSearch, asked: Sequence[str]) -> dict[str, Any]:
    return {
        **_part(culprit.part, search),
        "fault": culprit.fault or "slow",
        "loss": round(culprit.loss, 4),
        "runs": culprit.runs,
        "alone": culprit.solo,
        "evidence": labels.evidence(culprit, search.fleet),
        "next": labels.next_command(labels.next_step(culprit.part, search.hosts(culprit.part)), asked),
    }


def _doubt(doubt: Doubt, search: SlowSearch) -> dict[str, Any]:
    return {
        "between": [_part(part, search) for part in doubt.candidates],
        "loss": round(doubt.loss, 4),
        "more_rounds": doubt.more_rounds,
    }


def _run(run: GroupRun, search: SlowSearch) -> dict[str, Any]:
    return {
        "round": run.round + 1,
        "hosts": [search.fleet.nodes[node] for node in run.nodes],
        "figures": [0.0 if rail <= BAD else round(exp(rail), 5) for rail in run.rails],
        "fault": run.fault,
    }


def exit_code(search: SlowSearch) -> int:
    """Return 5 if something is slow or broken, 3 if that is undecided or hosts were not measured, otherwise 0."""
    if search.result.culprits or search.stragglers or search.shortfall:
        return TOO_SLOW
    return INCOMPLETE if search.result.doubts or search.unreached or search.shortfall is None else OK
