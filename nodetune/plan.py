"""Findings → ordered steps with before, after and disruption, and how they are carried out. Pure: nothing is applied."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nodetune import fixes, show
from nodetune.fixes import FREE, Facts, Group
from nodetune.model import DISRUPTIONS, Absent, Finding, HostFacts, HostResult, Step, Value
from nodetune.view import Unreadable

Skipped = list[tuple[Step, str]]
"""Steps that are left out, with the reason."""

NVML = "gpu.nvml"
GPU_PROCESSES = ("gpu.compute_running_processes", "gpu.mps_compute_running_processes")
MOST_NAMED = 3


@dataclass(frozen=True)
class Built:
    """How the steps of one host are carried out, and which cannot be."""

    groups: tuple[Group, ...] = ()
    unfixable: tuple[tuple[Step, str], ...] = ()


def plan(results: Iterable[HostResult]) -> tuple[Step, ...]:
    """What would be changed, host by host, least disruptive first. Findings without a safe fix have no step."""
    steps = [_step(result.host, found) for result in results for found in result.failing() if found.fix]
    return tuple(sorted(steps, key=lambda step: (DISRUPTIONS.index(step.fix.disruption), step.check, step.host)))


def _step(host: str, found: Finding) -> Step:
    assert found.fix is not None  # noqa: S101  (for the type checker: the caller selected these)
    return Step(host, found.check, found.fix, found.observed, _after(found.fix.value, found.fix.unit))


def _after(value: Any, unit: str) -> str:
    """A structure as it will stand in its file; anything else as people read it."""
    return show.plain(json.dumps(value)) if isinstance(value, Mapping) else show.value(value, unit)


def by_hand(results: Iterable[HostResult]) -> dict[str, tuple[Finding, list[str]]]:
    """Failing checks that only a person can put right: id → (a finding, the hosts)."""
    found: dict[str, tuple[Finding, list[str]]] = {}
    for result in results:
        for finding in result.failing():
            if finding.fix is None:
                found.setdefault(finding.check, (finding, []))[1].append(result.host)
    return found


def build(steps: Iterable[Step], facts: HostFacts) -> Built:
    """How the steps of one host (others are passed over) would be carried out."""
    groups, unfixable = fixes.groups([step for step in steps if step.host == facts.host], facts)
    return Built(tuple(groups), tuple(unfixable))


def alike(built: Mapping[str, Built]) -> list[tuple[tuple[Group, ...], list[str]]]:
    """(groups, the hosts where they are exactly these), for every host where there is something to do."""
    found: dict[str, tuple[tuple[Group, ...], list[str]]] = {}
    for host, each in built.items():
        if each.groups:
            key = json.dumps([group.data() for group in each.groups], sort_keys=True)
            found.setdefault(key, (each.groups, []))[1].append(host)
    return list(found.values())


def sorted_out(steps: Iterable[Step], built: Mapping[str, Built]) -> tuple[list[Step], Skipped]:
    """(the steps that can be carried out, those that cannot and why)."""
    reasons = {(step.host, step.check): why for each in built.values() for step, why in each.unfixable}
    doable: list[Step] = []
    cannot: Skipped = []
    for step in steps:
        why = reasons.get((step.host, step.check))
        if why is None:
            doable.append(step)
        else:
            cannot.append((step, why))
    return doable, cannot


def select(
    steps: Iterable[Step], max_disruption: str, waits: Mapping[str, str] | None = None
) -> tuple[list[Step], Skipped]:
    """(what may be done, what is left out and why).

    `waits` maps a host to why nothing that disturbs running work may be done there now; empty text: nothing is in the way.
    """
    most = DISRUPTIONS.index(max_disruption)
    chosen: list[Step] = []
    skipped: Skipped = []
    for step in steps:
        disruption = step.fix.disruption
        in_the_way = "" if disruption in FREE else (waits or {}).get(step.host, "")
        if DISRUPTIONS.index(disruption) > most:
            skipped.append((step, f"it costs: {disruption}; allow it with --max-disruption {_quoted(disruption)}"))
        elif in_the_way:
            skipped.append((step, f"it costs: {disruption}; {in_the_way}"))
        else:
            chosen.append(step)
    return chosen, skipped


def _quoted(text: str) -> str:
    return f"'{text}'" if " " in text else text


def busy(facts: HostFacts) -> str:
    """Why steps that disturb running work have to wait on a host: who uses its GPUs. Empty when nobody does."""
    try:
        found = users(facts)
    except Unreadable as problem:
        return str(problem)
    return f"it waits until these no longer use a GPU: {found}" if found else ""


def in_slurm(facts: HostFacts) -> bool:
    """Whether a slurmd runs there, so that draining the node makes its jobs end. Not known counts as no."""
    found = facts.get("services.processes")
    return isinstance(found, Value) and isinstance(found.value, Mapping) and bool(found.value.get("slurmd"))


def users(facts: HostFacts) -> str:
    """The processes that compute on GPUs, by name and number; empty when there are none. Raises Unreadable."""
    if isinstance(facts.get(NVML), Absent):
        return ""
    try:
        found = sorted({_user(each) for name in GPU_PROCESSES for each in _processes(facts, name)})
    except (Unreadable, TypeError, ValueError, AttributeError) as problem:
        raise Unreadable(f"whether a process uses a GPU is not known ({show.plain(problem)})") from None
    return _some(found)


def _processes(facts: HostFacts, name: str) -> list[Any]:
    of_each_gpu = Facts(facts).get(name) or {}
    return [process for processes in of_each_gpu.values() for process in processes]


def _user(process: Mapping[str, Any]) -> str:
    return f"{process.get('name') or 'process'} ({process.get('pid')})"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return show.plain(", ".join(names[:MOST_NAMED]) + more)


def facts_for(kinds: Iterable[str]) -> set[str]:
    """The facts that building steps of these remedy kinds takes, beyond those that the checks judge."""
    return fixes.needs(kinds) | {NVML, *GPU_PROCESSES}
