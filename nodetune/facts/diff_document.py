"""Differences as JSON data: the published form (schema nodetune.diff/1)."""

from typing import Any

from nodetune.facts.diff import Diff, folded
from nodetune.foundation.json_document import head

SCHEMA = "nodetune.diff/1"


def document(diff: Diff, before: str, after: str) -> dict[str, Any]:
    """Return one object; equal changes appear once, with all their hosts and devices."""
    return {
        **head(SCHEMA),
        "of": diff.of,
        "before": before,
        "after": after,
        "same": not diff,
        "compared": diff.compared,
        "lost": list(diff.lost),
        "added": list(diff.added),
        "states": [{"host": host, "before": was, "after": now} for host, (was, now) in diff.states.items()],
        "rebooted": list(diff.rebooted),
        "readings": diff.readings,
        "changes": [
            {
                "kind": change.kind,
                "what": change.what,
                "hosts": hosts,
                "subjects": subjects,
                "before": change.before,
                "after": change.after,
                "severity": change.severity or None,
                "title": change.title,
            }
            for change, hosts, subjects in folded(diff.changes)
        ],
    }
