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
    *("addresses", "allocatable", "capacity", "config", "daemonEndpoints", "declaredFeatures", "features", "images"),
    *("nodeInfo", "phase", "runtimeHandlers", "volumesAttached", "volumesInUse"),
)
"""All fields of a node's status but its conditions."""
METADATA_FIELDS = ("annotations", "finalizers", "labels", "ownerReferences")
SPEC_FIELDS = ("configSource", "externalID", "podCIDR", "podCIDRs", "podPreemptionPolicy", "providerID", "taints")
"""All fields of a node's spec but the one that a cordon sets."""


def named(name: str, namespace: str = "") -> dict[str, Any]:
    return {"name": name, **({"namespace": namespace} if namespace else {}), "labels": dict(LABELS)}


def guarding(namespace: str) -> list[dict[str, Any]]:
    """Return the guard's account: it may patch the status of nodes, and make Events."""
    return _account(namespace, NAME, {"nodes/status": ["patch"], "events": ["create"]})


def clearing(namespace: str, name: str) -> list[dict[str, Any]]:
    """Return an account that may find the nodes with a condition, and patch their status."""
    return _account(namespace, name, {"nodes/status": ["patch"], "nodes": ["list"]})


def fixing(namespace: str) -> list[dict[str, Any]]:
    """Return an account that may apply fixes: root on every node by privileged pods, cordons, and evictions."""
    here = {"pods": ["create", "delete", "get", "list"], "pods/exec": ["create", "get"]}
    everywhere = {"nodes": ["get", "list", "patch"], "pods": ["list"], "pods/eviction": ["create"]}
    account, *of_cluster = _account(namespace, FIX, everywhere)
    of_namespace = _granted("", named(FIX, namespace), namespace, here)
    return [account, *of_namespace, *of_cluster, *_with_binding(_cordons_only(namespace))]


def _account(namespace: str, name: str, verbs: Mapping[str, list[str]]) -> list[dict[str, Any]]:
    """Return an account with its rights in the whole cluster: resource → verbs."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named(name, namespace)}
    return [account, *_granted("Cluster", named(name), namespace, verbs)]


def _granted(scope: str, about: dict[str, Any], namespace: str, verbs: Mapping[str, list[str]]) -> list[dict[str, Any]]:
    """Return a role, and its binding to the account of the same name. `scope` begins their kinds: Cluster, or nothing."""
    group, name = "rbac.authorization.k8s.io", about["name"]
    head = {"apiVersion": f"{group}/v1", "kind": f"{scope}Role", "metadata": about}
    rules = [{"apiGroups": [""], "resources": [each], "verbs": may} for each, may in verbs.items()]
    bound = {
        "roleRef": {"apiGroup": group, "kind": head["kind"], "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }
    return [{**head, "rules": rules}, {**head, "kind": f"{scope}RoleBinding", **bound}]


def admission(namespace: str) -> list[dict[str, Any]]:
    """Return the policies that hold the guard to its own node, with their bindings."""
    return [*_with_binding(_own_conditions(namespace)), *_with_binding(_own_events(namespace))]


def _with_binding(policy: dict[str, Any]) -> list[dict[str, Any]]:
    name = policy["metadata"]["name"]
    return [
        policy,
        {
            "apiVersion": policy["apiVersion"],
            "kind": f"{policy['kind']}Binding",
            "metadata": named(name),
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        },
    ]


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
