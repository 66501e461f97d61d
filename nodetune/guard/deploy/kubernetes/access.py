"""The rights of the guard in a cluster: to patch one condition of its own node, and nothing else. Pure.

RBAC alone lets a token that may patch nodes/status rewrite the labels of every node; the admission policy prevents it.
"""

from __future__ import annotations

from typing import Any

from nodetune.guard.node.condition import TYPE

NAMESPACE, NAME, FIX = "nodetune", "nodetune-guard", "nodetune-fix"
LABELS = {"app.kubernetes.io/name": "nodetune", "app.kubernetes.io/part-of": "nodetune"}
OLDEST = (1, 32)
"""Older API servers do not name the node in a pod's token: the policy would refuse every patch."""

NODE_CLAIM = "authentication.kubernetes.io/node-name"
STATUS_FIELDS = (
    "addresses",
    "allocatable",
    "capacity",
    "config",
    "daemonEndpoints",
    "declaredFeatures",
    "features",
    "images",
    "nodeInfo",
    "phase",
    "runtimeHandlers",
    "volumesAttached",
    "volumesInUse",
)
"""All fields of a node's status but its conditions."""
METADATA_FIELDS = ("annotations", "finalizers", "labels", "ownerReferences")


def account(namespace: str, name: str = NAME) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named(name, namespace)}


def named(name: str, namespace: str = "") -> dict[str, Any]:
    return {"name": name, **({"namespace": namespace} if namespace else {}), "labels": dict(LABELS)}


def cluster_role(verbs: tuple[str, ...] = ("patch",), name: str = NAME) -> dict[str, Any]:
    """Return the role to patch the status of nodes; with other verbs, those for nodes as well."""
    rules = [{"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]}]
    others = [verb for verb in verbs if verb != "patch"]
    if others:
        rules.append({"apiGroups": [""], "resources": ["nodes"], "verbs": others})
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": named(name),
        "rules": rules,
    }


def binding(namespace: str, name: str = NAME) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": named(name),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }


def fixing(namespace: str) -> list[dict[str, Any]]:
    """Return an account that may apply fixes: root on every node by privileged pods, cordons, and evictions."""
    here = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["create", "delete", "get", "list"]},
        {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create", "get"]},
    ]
    everywhere = [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "patch"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
    ]
    role = {**cluster_role(name=FIX), "kind": "Role", "metadata": named(FIX, namespace), "rules": here}
    bound = binding(namespace, FIX)
    role_ref = {**bound["roleRef"], "kind": "Role"}
    return [
        account(namespace, FIX),
        role,
        {**bound, "kind": "RoleBinding", "metadata": named(FIX, namespace), "roleRef": role_ref},
        {**cluster_role(name=FIX), "rules": everywhere},
        bound,
    ]


def admission_policy(namespace: str) -> dict[str, Any]:
    """Return the policy that holds the guard to its own node and its own condition."""
    nodes = {"apiGroups": [""], "apiVersions": ["*"], "resources": ["nodes", "nodes/status"]}
    user = f"request.userInfo.username == 'system:serviceaccount:{namespace}:{NAME}'"
    rest = f".?conditions.orValue([]).filter(c, c.type != '{TYPE}')"
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": named(NAME),
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{**nodes, "operations": ["CREATE", "UPDATE", "DELETE"]}]},
            "matchConditions": [{"name": "is-the-guard", "expression": user}],
            "variables": [
                {"name": "node", "expression": f"request.userInfo.extra[?'{NODE_CLAIM}'].orValue([''])[0]"},
                {"name": "after", "expression": f"object.status{rest}"},
                {"name": "before", "expression": f"oldObject.status{rest}"},
            ],
            "validations": [
                _held("request.operation == 'UPDATE' && request.subResource == 'status'", "only the status of a node"),
                _held("variables.node != '' && variables.node == request.name", "only its own node"),
                _held(
                    "variables.after == variables.before"
                    f" && object.status.?conditions.orValue([]).filter(c, c.type == '{TYPE}').size() <= 1",
                    f"only the condition {TYPE}",
                ),
                _held(_unchanged("status", STATUS_FIELDS), "nothing else in the status"),
                _held(_unchanged("metadata", METADATA_FIELDS), "no labels and no other metadata"),
            ],
        },
    }


def policy_binding() -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": named(NAME),
        "spec": {"policyName": NAME, "validationActions": ["Deny"]},
    }


def _held(expression: str, may: str) -> dict[str, Any]:
    return {"expression": expression, "message": f"nodetune's guard may change {may}", "reason": "Forbidden"}


def _unchanged(part: str, fields: tuple[str, ...]) -> str:
    return " && ".join(f"object.{part}.?{field} == oldObject.{part}.?{field}" for field in fields)
