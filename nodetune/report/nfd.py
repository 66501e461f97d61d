"""An audit as NodeFeature objects of Node Feature Discovery (NFD), which labels the nodes: one for each host that was reached.

https://kubernetes-sigs.github.io/node-feature-discovery/stable/usage/custom-resources.html
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import TextIO

from nodetune.api.model import SEVERITIES, HostResult
from nodetune.audit.summary import compliant

PREFIX = "feature.node.kubernetes.io/nodetune-"
NODE = "nfd.node.kubernetes.io/node-name"
NONE = "none"
NODE_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")
"""Of a node; it is also the value of a label."""


def write(results: Iterable[HostResult], stream: TextIO) -> None:
    """Write a list in JSON, which kubectl takes."""
    write_features(stream, "nodetune", ((each.host, _labels(each)) for each in results if each.state == "ok"))


def _labels(result: HostResult) -> dict[str, str]:
    failing = {found.severity for found in result.findings if found.status == "fail"}
    worst = next((severity for severity in reversed(SEVERITIES) if severity in failing), NONE)
    return {"compliant": str(compliant(result)).lower(), "worst-finding": worst}


def write_features(stream: TextIO, name: str, labels: Iterable[tuple[str, Mapping[str, str]]]) -> None:
    """Write the labels of each host. Hosts that cannot be nodes by their names are left out."""
    items = [
        {
            "apiVersion": "nfd.k8s-sigs.io/v1alpha1",
            "kind": "NodeFeature",
            "metadata": {"name": f"{name}-{host}", "labels": {NODE: host}},
            "spec": {"labels": {PREFIX + label: value for label, value in told.items()}},
        }
        for host, told in labels
        if NODE_NAME.fullmatch(host)
    ]
    json.dump({"apiVersion": "v1", "kind": "List", "items": items}, stream, indent=1)
    stream.write("\n")
