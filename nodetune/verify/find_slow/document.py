"""A search as JSON data (schema nodetune.find-slow/1)."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import Any

from nodetune.api import conclusion_json
from nodetune.foundation.exit_codes import INCOMPLETE, OK, TOO_SLOW
from nodetune.foundation.json_document import head
from nodetune.statistics.likelihood import BAD
from nodetune.verify.find_slow import labels
from nodetune.verify.find_slow.conclude import concluded
from nodetune.verify.find_slow.model import Culprit, Doubt, Part, Run
from nodetune.verify.find_slow.run import SlowSearch

SCHEMA = "nodetune.find-slow/1"


def document(found: SlowSearch, asked: Sequence[str]) -> dict[str, Any]:
    """Return the document. `asked`: the options that select the hosts, for the proposed commands."""
    fleet, result = found.fleet, found.result
    told = head(SCHEMA)
    return {
        **told,
        "hosts": [
            {"name": name, "leaf": fleet.names[domain]} for name, domain in zip(fleet.nodes, fleet.domains, strict=True)
        ],
        "not_measured": [{"name": each.host, "state": each.state, "message": each.message} for each in found.unreached],
        "culprits": [_culprit(each, found, asked) for each in result.culprits],
        "alone": [
            {
                "host": each.host,
                "subject": each.subject,
                "metric": each.metric,
                "loss": round(each.loss, 4),
                "runs": each.runs,
                "chance": each.chance,
                "at_least": each.floor.bound if each.floor else None,
            }
            for each in found.stragglers
        ],
        "causes": {host: list(lines) for host, lines in found.causes.items()},
        "doubts": [_doubt(each, found) for each in result.doubts],
        "whole": {
            "hosts": [fleet.nodes[node] for node in result.whole],
            "figure": result.whole_figure,
            "fault": result.whole_fault,
            "short": found.left,
        },
        "level": result.level,
        "unit": found.unit,
        "noise": result.noise,
        "falls": list(result.falls),
        "rounds": [
            {"kind": each.kind, "runs": len(each.groups), "seconds": round(seconds, 3)}
            for each, seconds in zip(result.rounds, found.seconds, strict=False)
        ],
        "runs": [_run(each, found) for each in result.runs],
        **conclusion_json.members(concluded(found, told["time"])),
    }


def _part(part: Part, found: SlowSearch) -> dict[str, Any]:
    return {
        "kind": part.kind,
        "name": labels.name(part, found.fleet),
        "hosts": found.hosts(part),
        "number": part.rail,
    }


def _culprit(each: Culprit, found: SlowSearch, asked: Sequence[str]) -> dict[str, Any]:
    return {
        **_part(each.part, found),
        "fault": each.fault or "slow",
        "loss": round(each.loss, 4),
        "runs": each.runs,
        "alone": each.solo,
        "evidence": labels.evidence(each, found.fleet),
        "next": labels.next_command(each.part, found, asked),
    }


def _doubt(each: Doubt, found: SlowSearch) -> dict[str, Any]:
    return {
        "between": [_part(part, found) for part in each.between],
        "loss": round(each.loss, 4),
        "more_rounds": each.rounds,
    }


def _run(each: Run, found: SlowSearch) -> dict[str, Any]:
    return {
        "round": each.round + 1,
        "hosts": [found.fleet.nodes[node] for node in each.nodes],
        "figures": [0.0 if rail <= BAD else round(exp(rail), 5) for rail in each.rails],
        "fault": each.fault,
    }


def exit_code(found: SlowSearch) -> int:
    """Return 5 if something is slow or broken, 3 if that is undecided or hosts were not measured, otherwise 0."""
    if found.result.culprits or found.stragglers or found.left:
        return TOO_SLOW
    return INCOMPLETE if found.result.doubts or found.unreached or found.left is None else OK
