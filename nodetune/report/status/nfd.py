"""The status of hosts as NodeFeature objects of Node Feature Discovery: whether a node was examined, and its worst open fault."""

from __future__ import annotations

import json
from typing import TextIO

from nodetune.api.model import SEVERITIES
from nodetune.report.nfd import NODE, NODE_NAME, NONE, PREFIX
from nodetune.report.status.proposed import Asked
from nodetune.report.status.standing import Entry, Host, Standing


def write(found: Standing, _asked: Asked, stream: TextIO) -> None:
    """Write a list in JSON, which kubectl takes. Hosts that cannot be nodes by their names are left out."""
    entries = found.entries_of()
    items = [
        _feature(each, entries.get(each.name, [])) for each in found.hosts.values() if NODE_NAME.fullmatch(each.name)
    ]
    json.dump({"apiVersion": "v1", "kind": "List", "items": items}, stream, indent=1)
    stream.write("\n")


def _feature(host: Host, entries: list[Entry]) -> dict[str, object]:
    worst = max((each.of.severity for each in entries), key=SEVERITIES.index, default=NONE)
    labels = {"status": host.state, "worst-fault": worst}
    return {
        "apiVersion": "nfd.k8s-sigs.io/v1alpha1",
        "kind": "NodeFeature",
        "metadata": {"name": f"nodetune-status-{host.name}", "labels": {NODE: host.name}},
        "spec": {"labels": {PREFIX + name: value for name, value in labels.items()}},
    }
