"""Cordons of nodes that say who made them and why, and the eviction of the pods that run there."""

import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any

from nodetune.foundation import text as plain_text
from nodetune.remote.kubernetes.api import BUSY, Api, ApiError

BY = "nodetune.io/cordoned-by"
"""The annotation of a node that nodetune cordoned: which run it was."""

MIRROR = "kubernetes.io/config.mirror"
OURS = "nodetune"
GONE, CHANGED, REFUSED = 404, 409, 422
ENDING = "it is ending"
TRIES = 5
POLL_SECONDS = 2.0
MAX_NAMED = 3
MERGE, JSON_PATCH = "merge-patch+json", "json-patch+json"


def is_cordoned(api: Api, node: str) -> bool:
    """Return whether no new pods are sent to a node. Raise ApiError."""
    return bool((_node(api, node).get("spec") or {}).get("unschedulable"))


def cordon(api: Api, node: str, by: str) -> bool:
    """Cordon a node. Return whether this is our cordon: one of others is kept as it is. Raise ApiError."""
    for number in range(TRIES):
        found = _node(api, node)
        if (found.get("spec") or {}).get("unschedulable"):
            return bool((found["metadata"].get("annotations") or {}).get(BY) == by)
        metadata = {"resourceVersion": found["metadata"].get("resourceVersion"), "annotations": {BY: by}}
        try:
            api.request("PATCH", _path(node), {"metadata": metadata, "spec": {"unschedulable": True}}, kind=MERGE)
        except ApiError as problem:
            if problem.status != CHANGED or number == TRIES - 1:
                raise
        else:
            return True
    return False


def uncordon(api: Api, node: str, by: str) -> bool:
    """End our cordon. Return whether it was ours: that of others stays. Raise ApiError."""
    annotation = "/metadata/annotations/" + BY.replace("/", "~1")
    steps = [
        {"op": "test", "path": annotation, "value": by},
        {"op": "remove", "path": annotation},
        {"op": "test", "path": "/spec/unschedulable", "value": True},
        {"op": "remove", "path": "/spec/unschedulable"},
    ]
    try:
        api.request("PATCH", _path(node), steps, kind=JSON_PATCH)
    except ApiError as problem:
        if problem.status == REFUSED:
            return False
        raise
    return True


def evict(api: Api, node: str, seconds: float, stop: threading.Event) -> tuple[int, str]:
    """Evict the pods of a node and wait until they have ended. Return how many were evicted, and why some are left.

    Left alone: pods of a DaemonSet, mirror pods and our own. A pod that nothing would start again is not evicted, and
    neither are the others then. Raise ApiError.
    """
    end, evicted = time.monotonic() + seconds, set[str]()
    while True:
        pods = _to_evict(api, node)
        lonely = [_name(each) for each in pods if not (_controller(each) or _is_ending(each))]
        if lonely:
            return len(
                evicted
            ), f"nothing would start these pods again: {_names(lonely)}: delete them, or wait for their end"
        if not pods:
            return len(evicted), ""
        why = {_name(each): _evicted(api, each) for each in pods}
        evicted |= {_uid(each) for each in pods if why[_name(each)] == ENDING and not _is_ending(each)}
        if time.monotonic() > end or stop.wait(POLL_SECONDS):
            left = _names(f"{name} ({reason})" for name, reason in why.items())
            return len(evicted), f"pods still run here after {plain_text.span(seconds)}: {left}"


def _is_ending(pod: Mapping[str, Any]) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


def _evicted(api: Api, pod: Mapping[str, Any]) -> str:
    """Evict a pod. Return why it still runs. Raise ApiError if it may not be evicted at all."""
    if _is_ending(pod):
        return ENDING
    metadata = {name: pod["metadata"][name] for name in ("name", "namespace")}
    asked = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": metadata,
        "deleteOptions": {"preconditions": {"uid": _uid(pod)}},
    }
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/eviction"
    try:
        api.request("POST", path, asked, tries=1)
    except ApiError as problem:
        if problem.status == BUSY:
            return "its PodDisruptionBudget allows no eviction now"
        if problem.status in (GONE, CHANGED):
            return ENDING
        if problem.status < 500:  # 500: several budgets, or an API server in trouble
            raise
        return str(problem)
    return ENDING


def _to_evict(api: Api, node: str) -> list[dict[str, Any]]:
    """Return the pods that must leave. Raise ApiError."""
    every = api.items("/api/v1/pods", {"fieldSelector": f"spec.nodeName={node}"})
    return [each for each in every if not _stays(each)]


def _stays(pod: Mapping[str, Any]) -> bool:
    metadata = pod["metadata"]
    return (
        (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        or MIRROR in (metadata.get("annotations") or {})
        or (metadata.get("labels") or {}).get("app.kubernetes.io/name") == OURS
        or _controller(pod) == "DaemonSet"
    )


def _controller(pod: Mapping[str, Any]) -> str:
    owners = pod["metadata"].get("ownerReferences") or []
    return str(next((each.get("kind") for each in owners if each.get("controller")), ""))


def _uid(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"]["uid"])


def _name(pod: Mapping[str, Any]) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _names(names: Iterable[str]) -> str:
    found = list(names)
    more = f" and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
    return plain_text.plain(", ".join(found[:MAX_NAMED]) + more, 300)


def _node(api: Api, node: str) -> dict[str, Any]:
    return api.request("GET", _path(node))


def _path(node: str) -> str:
    return f"/api/v1/nodes/{node}"
