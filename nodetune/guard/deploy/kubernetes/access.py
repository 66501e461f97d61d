"""The rights of the guard in a cluster: to patch two conditions of its own node, to make Events of it, and nothing else. Pure.

RBAC alone lets a token that may patch nodes/status rewrite the labels of every node, and make Events of anything; admission
policies prevent it.
"""

from collections.abc import Mapping
from typing import Any

from nodetune.guard.node.condition import TYPES
from nodetune.guard.node.node_status import COMPONENT, EVENTS
from nodetune.remote.kubernetes.cordon import BY as CORDONED_BY

NAMESPACE, NAME, FIX = "nodetune", "nodetune-guard", "nodetune-fix"
LABELS = {"app.kubernetes.io/name": "nodetune", "app.kubernetes.io/part-of": "nodetune"}
OLDEST = (1, 32)
"""Older API servers do not name the node in a pod's token: the policy would refuse every patch."""

NODE_CLAIM = "authentication.kubernetes.io/node-name"
NODE = {"node": f"request.userInfo.extra[?'{NODE_CLAIM}'].orValue([''])[0]"}
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
SPEC_FIELDS = ("configSource", "externalID", "podCIDR", "podCIDRs", "podPreemptionPolicy", "providerID", "taints")
"""All fields of a node's spec but the one that a cordon sets."""


def account(namespace: str, name: str = NAME) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named(name, namespace)}


def named(name: str, namespace: str = "") -> dict[str, Any]:
    return {"name": name, **({"namespace": namespace} if namespace else {}), "labels": dict(LABELS)}


def cluster_role(verbs: tuple[str, ...] = ("patch",), name: str = NAME) -> dict[str, Any]:
    """Return the role to patch the status of nodes; of the guard to make Events, and with other verbs those for nodes as well."""
    rules = [{"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]}]
    if name == NAME:
        rules.append({"apiGroups": [""], "resources": ["events"], "verbs": ["create"]})
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
        _cordons_only(namespace),
        policy_binding(FIX),
    ]


def admission(namespace: str) -> list[dict[str, Any]]:
    """Return the policies that hold the guard to its own node, with their bindings."""
    policies = [_own_conditions(namespace), _own_events(namespace)]
    return [each for made in policies for each in (made, policy_binding(made["metadata"]["name"]))]


def _own_conditions(namespace: str) -> dict[str, Any]:
    types = ", ".join(f"'{each}'" for each in TYPES)
    conditions = ".?conditions.orValue([])"
    rest = f"{conditions}.filter(c, !(c.type in [{types}]))"
    whole = f"object.status{conditions}.all(c, !(c.type in [{types}]) || c.status in ['True', 'False', 'Unknown'])"
    once = [f"object.status{conditions}.filter(c, c.type == '{each}').size() <= 1" for each in TYPES]
    return _held(
        namespace,
        NAME,
        {**NODE, "after": f"object.status{rest}", "before": f"oldObject.status{rest}"},
        {
            "only the status of a node": "request.operation == 'UPDATE' && request.subResource == 'status'",
            "only its own node": "variables.node != '' && variables.node == request.name",
            f"only the conditions {' and '.join(TYPES)}": " && ".join(
                ["variables.after == variables.before", whole, *once]
            ),
            "nothing else in the status": _unchanged("status", STATUS_FIELDS),
            "no labels and no other metadata": _unchanged("metadata", METADATA_FIELDS),
        },
    )


def _own_events(namespace: str) -> dict[str, Any]:
    about = (
        "object.involvedObject.?kind.orValue('') == 'Node' && object.involvedObject.?name.orValue('') == variables.node"
    )
    made = _held(
        namespace,
        NAME,
        NODE,
        {
            "no Event that is there": "request.operation == 'CREATE'",
            "of Events only those of its own node": f"variables.node != '' && {about}",
            f"of Events only those in the namespace {EVENTS}": f"object.metadata.namespace == '{EVENTS}'",
            f"of Events only those of {COMPONENT}": f"object.?source.?component.orValue('') == '{COMPONENT}'",
        },
        ("events",),
    )
    return {**made, "metadata": named(f"{NAME}-events")}


def _cordons_only(namespace: str) -> dict[str, Any]:
    """Return the policy that holds the account for fixes, of all changes of a node, to the cordon and its annotation."""
    annotations = "metadata.?annotations.orValue({})"
    kept = f"all(k, k == '{CORDONED_BY}' || variables.after[?k] == variables.before[?k])"
    metadata = tuple(each for each in METADATA_FIELDS if each != "annotations")
    return _held(
        namespace,
        FIX,
        {"after": f"object.{annotations}", "before": f"oldObject.{annotations}"},
        {
            "only a node itself, not its status": "request.operation == 'UPDATE' && request.?subResource.orValue('') == ''",
            "only whether a node is cordoned": _unchanged("spec", SPEC_FIELDS),
            f"only the annotation {CORDONED_BY}": f"variables.after.{kept} && variables.before.{kept}",
            "no labels and no other metadata": _unchanged("metadata", metadata),
        },
    )


def policy_binding(name: str = NAME) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": named(name),
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }


def _held(
    namespace: str,
    name: str,
    variables: Mapping[str, str],
    may: Mapping[str, str],
    resources: tuple[str, ...] = ("nodes", "nodes/status"),
) -> dict[str, Any]:
    """Return a policy for one account: what it may change of these resources → the expression that is true then."""
    matched = {"apiGroups": [""], "apiVersions": ["*"], "resources": list(resources)}
    user = f"request.userInfo.username == 'system:serviceaccount:{namespace}:{name}'"
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": named(name),
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{**matched, "operations": ["CREATE", "UPDATE", "DELETE"]}]},
            "matchConditions": [{"name": "is-this-account", "expression": user}],
            "variables": [{"name": each, "expression": expression} for each, expression in variables.items()],
            "validations": [
                {"expression": expression, "message": f"{name} may change {what}", "reason": "Forbidden"}
                for what, expression in may.items()
            ],
        },
    }


def _unchanged(part: str, fields: tuple[str, ...]) -> str:
    return " && ".join(f"object.{part}.?{field} == oldObject.{part}.?{field}" for field in fields)
