"""Drain the guard's own node in Slurm, and distinguish our drains from those of others.

A drain is ours if our record on the node matches it: anyone could have written the reason.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from nodetune.foundation import text as plain_text
from nodetune.guard.node import records
from nodetune.guard.node.invocation import GIVEN
from nodetune.guard.node.records import PREFIX
from nodetune.guard.node.scontrol import ScontrolError, Slurm, SlurmNode

OF_SLURM = re.compile(r"(Prolog|Epilog) error$")
CLOCKS_SECONDS = 120
"""By how much the node's clock and slurmctld's may differ, and how long a drain may be under way."""
LATEST = 1 << 40
"""Of a time in a note: some 30,000 years."""
RECENT_SECONDS = 1800
"""How old a failure may be for its drain to be given its reason."""
NOTE, EXPLAINED = "drained.json", "explained"
AWAITS = "awaits_reason"
"""Marks the note of a job that the guard held, and whose drain is Slurm's until it gets the guard's reason."""
KEPT = GIVEN["kept"]
"""A copy outside /run, which a reboot empties: a reboot is often what fixes the node."""


def note(run: str, data: Mapping[str, Any]) -> None:
    """Record a drain that is about to happen. Without space for the record it cannot be proven later."""
    text = json.dumps(data) + "\n"
    for folder in (run, KEPT):
        try:
            os.makedirs(folder, mode=0o755, exist_ok=True)
            records.write(os.path.join(folder, NOTE), text)
        except OSError:
            continue


def notes(run: str) -> list[dict[str, Any]]:
    """Return the notes of this node: the one of this boot, and the one that survives a reboot."""
    found = (_data(os.path.join(folder, NOTE)) for folder in (run, KEPT))
    return [each for each in found if each]


def claimed(node: SlurmNode) -> bool:
    """Return whether the drain of the node may be the guard's by its reason; the notes show whether it is."""
    return "DRAIN" in node.state and (node.reason.startswith(PREFIX) or of_slurm(node))


def of_slurm(node: SlurmNode) -> bool:
    """Return whether Slurm itself drained the node, until the next health check sets the guard's reason."""
    return bool(OF_SLURM.match(node.reason))


def ours(node: SlurmNode, told: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the node's records of its drain; empty if the drain is not the guard's."""
    mine = [each for each in told if each.get("node") == node.name]
    return [each for each in mine if _same_reason(node, each) and _same_time(node, each)]


def _same_reason(node: SlurmNode, told: Mapping[str, Any]) -> bool:
    """Return whether the record has the node's reason, or a held job for which Slurm drained the node."""
    if of_slurm(node):
        return "DRAIN" in node.state and told.get(AWAITS) is True
    return node.reason.startswith(PREFIX) and told.get("reason") == node.reason


def awaiting(record: Mapping[str, Any], explained: int) -> Mapping[str, Any]:
    """Return the newest failure record as a note; empty if a drain has had its reason since (`explained`)."""
    held = record.get("time")
    return {**record, AWAITS: True} if isinstance(held, int) and held > explained else {}


def _same_time(node: SlurmNode, told: Mapping[str, Any]) -> bool:
    stamp = told.get("time")
    known = isinstance(stamp, int) and 0 <= stamp <= LATEST and node.since is not None
    return known and abs(node.since - stamp) <= CLOCKS_SECONDS  # type: ignore[operator]


def _data(path: str) -> dict[str, Any]:
    try:
        return plain_text.json_object(records.read(path))
    except OSError:
        return {}


def drain(there: Slurm, run: str, data: Mapping[str, Any], may: Callable[[], str] = str) -> str:
    """Drain a node with our reason. Return why that was left: another's drain, or a Slurm that does not answer.

    `data` (node, time, reason, checks …) becomes the note. `may` is asked once it is known that the node is in service,
    and returns why not, or "".
    """
    try:
        node = there.node(data["node"])
        if node.out_of_service:
            return f"{node.name} is already {node.state}, and its reason stays: {plain_text.plain(node.reason, 80)}"
        refused = may()
        if not refused:
            note(run, data)
            there.drain(data["node"], data["reason"])
            _explained(run)
    except ScontrolError as problem:
        return str(problem)
    return refused


def hold(there: Slurm, run: str, data: Mapping[str, Any]) -> list[str]:
    """Drain the node before a job is held, and requeue the job. Return what failed; Slurm then acts on its own.

    Slurm refuses a requeue for srun, salloc and --no-requeue, and for all but the first failing node of a job.
    """
    problem = drain(there, run, data)
    try:
        there.requeue(str(data["job"]))
    except ScontrolError as refused:
        return [each for each in (problem, str(refused)) if each]
    return [problem] if problem else []


def give_reasons(there: Slurm, run: str, name: str) -> str:
    """Set the reason if Slurm drained this node because the guard held a job. Return what was done, or ""."""
    fresh = list(_recent(run, name))
    if not fresh:
        return ""
    node = there.node(name)
    mine = [each for each in fresh if _same_time(node, each)]
    if "DRAIN" not in node.state or not of_slurm(node) or not mine or node.since is None:
        return ""
    since = node.since
    record = min(mine, key=lambda each: abs(since - each["time"]))
    note(run, {**record, "checks": [each["check"] for each in record["findings"]], "time": int(time.time())})
    there.give_reason(name, record["reason"])
    _explained(run)
    return f"the drain of job {record['job']} is ours: {record['reason']}"


def _explained(run: str) -> None:
    """Mark the failures on record as drained, so that the next drain is not counted as ours for them."""
    with suppress(OSError):
        records.write(os.path.join(run, EXPLAINED), f"{int(time.time())}\n")


def _recent(run: str, name: str) -> Iterable[dict[str, Any]]:
    """Yield the recent failure records of this boot that have not led to a drain yet.

    Those are the files that are newer than the mark: a node may be resumed and hold a job within the second of its reason.
    """
    boot, since, mark = records.boot_id(), time.time() - RECENT_SECONDS, 0
    with suppress(OSError):
        mark = os.stat(os.path.join(run, EXPLAINED)).st_mtime_ns
    with os.scandir(os.path.join(run, records.FAILED)) as entries:
        newer = [each.path for each in entries if not each.name.startswith(records.WRITING) and _written(each) > mark]
    for record in map(_data, newer):
        whole = isinstance(record.get("time"), int) and {"job", "node", "reason", "findings"} <= set(record)
        if whole and (record.get("boot"), record["node"]) == (boot, name) and record["time"] > since:
            yield record


def _written(entry: os.DirEntry[str]) -> int:
    """Return when a file was written, in ns; 0 if it is gone."""
    try:
        return entry.stat(follow_symlinks=False).st_mtime_ns
    except OSError:
        return 0
