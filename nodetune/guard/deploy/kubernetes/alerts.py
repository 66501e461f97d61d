"""Alerts on the guard's condition as kube-state-metrics exports it, for the Prometheus operator. Pure."""

from typing import Any

from nodetune.guard.deploy.kubernetes.access import named
from nodetune.guard.deploy.kubernetes.pods import DAEMON_SET
from nodetune.guard.node.condition import TYPE

NAME = "nodetune-guard"
LABEL = f'condition="{TYPE}",status="true"'
PROBLEM = f"max by (node) (kube_node_status_condition{{{LABEL}}})"
MAX_NODES, SHARE = 3, 0.1
"""A fault on more nodes than both is a roll-out, not a broken node."""


def rule(namespace: str) -> dict[str, Any]:
    """Return the PrometheusRule."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": named(NAME, namespace),
        "spec": {"groups": [{"name": NAME, "rules": _rules(namespace)}]},
    }


def _rules(namespace: str) -> list[dict[str, Any]]:
    pods = f'{{namespace="{namespace}",daemonset="{DAEMON_SET}"}}'
    return [
        _alert(
            TYPE,
            f"{PROBLEM} == 1",
            "critical",
            "A gating check fails on a node",
            "The message of the node's condition names the check: kubectl describe node NODE",
        ),
        _alert(
            f"{TYPE}OnManyNodes",
            f"count({PROBLEM} == 1) > {SHARE} * count({PROBLEM}) > {MAX_NODES}",
            "critical",
            "A gating check fails on many nodes at once",
            "Was a driver, a kernel or the guard's policy rolled out?",
        ),
        _alert(
            "NodetuneGuardNotReady",
            f"kube_daemonset_status_desired_number_scheduled{pods} - kube_daemonset_status_number_ready{pods} > 0",
            "warning",
            "The guard does not run, or cannot judge, on some nodes",
            f"The status of their condition stays as it is: kubectl get pods -n {namespace} -o wide; kubectl get events",
        )
        | {"for": "15m"},
    ]


def _alert(name: str, expr: str, severity: str, summary: str, description: str) -> dict[str, Any]:
    annotations = {"summary": summary, "description": description}
    return {"alert": name, "expr": expr, "labels": {"severity": severity}, "annotations": annotations}
