"""The guard's recent activity on this node for people: heartbeat, number of inconclusive runs, recorded failures."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from nodetune.foundation import text as plain_text
from nodetune.guard.node import records
from nodetune.guard.node.invocation import RUN, say

if TYPE_CHECKING:
    from nodetune.guard.node.invocation import Arguments, Job

MAX_FAILURES = 10


def run(asked: Arguments, job: Job) -> int:  # noqa: ARG001  (every sub-command has the same parameters)
    """Print it. A node on which the guard never ran says so."""
    for line in lines(asked.run):
        say(line)
    return RUN


def lines(folder: str) -> list[str]:
    beat = _text(os.path.join(folder, "heartbeat")).split(None, 2)
    count = _text(os.path.join(folder, records.COUNT)).partition("\n")[0]
    return [
        f"last run: {_when(beat[0])}, job {beat[1]}, {beat[2]}" if len(beat) == 3 else "last run: none since boot",
        f"inconclusive: {count or 'never since boot'}",
        *(f"held: {text}" for text in _failures(os.path.join(folder, records.FAILED))),
    ]


def _text(path: str) -> str:
    try:
        return plain_text.plain(records.read(path, 4096).strip())
    except OSError:
        return ""


def _when(seconds: str) -> str:
    return (
        time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(int(seconds)))
        if seconds.isdigit() and len(seconds) < 12
        else seconds
    )


def _failures(folder: str) -> list[str]:
    """Return the newest failure records, one line each."""
    import json

    try:
        paths = [entry.path for entry in os.scandir(folder) if not entry.name.startswith(records.WRITING)]
    except OSError:
        return []
    found = []
    for path in sorted(paths, key=os.path.getmtime, reverse=True)[:MAX_FAILURES]:
        try:
            record = json.loads(records.read(path))
            found.append(f"job {record['job']}, {_when(str(record['time']))}: {plain_text.plain(record['reason'])}")
        except (OSError, ValueError, KeyError, TypeError):
            found.append(f"{plain_text.plain(path)} cannot be read")
    return found
