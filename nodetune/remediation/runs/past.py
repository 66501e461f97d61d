"""Which earlier runs of this machine are over."""

from __future__ import annotations

from nodetune.remediation import runs
from nodetune.remediation.runs import Run

MOST = 20


def over(own: Run) -> dict[str, str]:
    """Return host → runs of this machine that are over, ended or not: their locks may be taken over."""
    past: dict[str, list[str]] = {}
    for run in runs.listing(own.folder.parent):
        for host in _hosts_if_over(run) if run.id != own.id else ():
            past.setdefault(host, []).append(run.id)
    return {host: " ".join(ids[:MOST]) for host, ids in past.items()}


def _hosts_if_over(run: Run) -> list[str]:
    try:
        return run.hosts if run.state() in (runs.DONE, runs.INTERRUPTED) else []
    except runs.RunError:  # a folder that tells nothing holds no lock that we may break
        return []
