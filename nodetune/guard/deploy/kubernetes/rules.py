"""Rules that act on the guard's condition: of the Node Readiness Controller, device taints, node-problem-detector. Pure."""

import json
from typing import Any

from nodetune.guard.deploy.kubernetes.access import named
from nodetune.guard.deploy.paths import CHECK, HOME
from nodetune.guard.node.condition import REASONS, TYPE

DEVICE_TAINTS = (1, 37)
"""The first API server that has DeviceTaintRule in v1. The scheduler of 1.36 ignores a rule, or panics."""
DRIVER = "gpu.nvidia.com"
DETECTOR_SECONDS = {"interval": 30, "timeout": 5}
MAX_LINE_LENGTH = 80


def readiness(node_selector: Any) -> list[dict[str, Any]]:
    """Return the rules, as dry runs.

    One keeps pods away while the guard sees a problem, one until it has looked at a new node.
    """
    healthy = {"type": TYPE, "requiredStatus": "False"}
    return [
        _readiness("nodetune-gpu-problem", "continuous", {**healthy, "defaultStatus": "False"}, node_selector),
        _readiness("nodetune-first-looks", "bootstrap-only", healthy, node_selector),
    ]


def _readiness(name: str, mode: str, condition: dict[str, Any], node_selector: Any) -> dict[str, Any]:
    return {
        "apiVersion": "readiness.node.x-k8s.io/v1alpha1",
        "kind": "NodeReadinessRule",
        "metadata": named(name),
        "spec": {
            "dryRun": True,
            "enforcementMode": mode,
            "nodeSelector": {"matchLabels": node_selector},
            "conditions": [condition],
            "taint": {"key": f"readiness.k8s.io/{name}", "effect": "NoSchedule"},
        },
    }


def device_taint(pool: str, device: str) -> dict[str, Any]:
    """Return the rule for one GPU. With the effect None, its status says how many pods another effect would evict."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": named(f"nodetune-{pool}-{device}"),
        "spec": {
            "deviceSelector": {"driver": DRIVER, "pool": pool, "device": device},
            "taint": {"key": "nodetune.io/gpu-problem", "effect": "None"},
        },
    }


def detector(namespace: str) -> dict[str, Any]:
    """Return the configuration for node-problem-detector, for nodes on which `nodetune guard install --timer` was run."""
    plugin = {
        "plugin": "custom",
        "pluginConfig": {
            "invoke_interval": f"{DETECTOR_SECONDS['interval']}s",
            "timeout": f"{DETECTOR_SECONDS['timeout']}s",
            "max_output_length": MAX_LINE_LENGTH,
            "concurrency": 1,
        },
        "source": "nodetune-guard",
        "conditions": [{"type": TYPE, "reason": REASONS["False"], "message": "all gating checks pass"}],
        "rules": [
            {
                "type": "permanent",
                "condition": TYPE,
                "reason": REASONS["True"],
                "path": f"{HOME}/{CHECK}",
                "args": ["--detector"],
                "timeout": f"{DETECTOR_SECONDS['timeout']}s",
            }
        ],
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": named("nodetune-problem-detector", namespace),
        "data": {"nodetune-guard.json": json.dumps(plugin, indent=1) + "\n"},
    }
