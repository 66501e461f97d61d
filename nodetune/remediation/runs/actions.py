"""The action of a run on each host, for the history."""

from __future__ import annotations

import datetime
import time

from nodetune.api.conclusion import Action
from nodetune.foundation import text
from nodetune.remediation.runs import earlier_runs
from nodetune.remediation.runs.record import Run

UNDONE = "rollback"


def of_run(run: Run) -> list[Action]:
    """Return an action for each host on which a run changed something, or may have. Raise RunError."""
    about = run.about
    kind = "rolled back" if about.get("command") == UNDONE else "applied"
    who, at = text.plain(str(about.get("user", ""))), _ended(about.get("ended"))
    return [
        Action(kind, host, at, who, _reason(run, host, text.plain(str(about.get("command", "")))), run.id)
        for host in earlier_runs.changed(run, run.hosts)
    ]


def _reason(run: Run, host: str, command: str) -> str:
    names = [text.plain(each) for each in earlier_runs.labels(run, host)]
    return f"{command}: {text.names(names)}" if names else command


def _ended(stamp: object) -> int:
    try:
        return int(datetime.datetime.fromisoformat(str(stamp)).timestamp())
    except ValueError:
        return int(time.time())
