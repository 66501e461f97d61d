"""The nodes of a cluster as hosts to reach, each with the pod of the DaemonSet that runs on it."""

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from nodetune.foundation import UserError, text
from nodetune.hosts import patterns
from nodetune.hosts.connection_options import Cluster, ConnectionOptions
from nodetune.hosts.target import Target
from nodetune.remote.kubernetes import pod
from nodetune.remote.kubernetes.api import Api, ApiError, connected

SELECTOR = "nodes:"
"""How an inventory begins that is a label selector."""


CONNECTION = "kubernetes"
SETTLING_SECONDS = 180.0
LOOK_SECONDS = 2.0


class NodesError(UserError):
    """No nodes can be selected. One line."""


def selected(options: ConnectionOptions, detail: Callable[[str], None]) -> list[Target]:
    """Return the nodes that -i, -l and --failed-of select. Raise NodesError, KubeconfigError, InventoryError."""
    cluster = options.options.cluster
    api = connected(cluster.context)
    try:
        nodes = _nodes(api, options.inventory)
        pods = _pods(api, cluster.namespace)
    except ApiError as problem:
        raise NodesError(str(problem)) from None
    names = set(patterns.pick(options.limit, sorted(nodes), {})) if options.limit else set(nodes)
    found = [
        _target(name, nodes[name], pods.get(name), cluster)
        for name in sorted(nodes)
        if name in names and options.wants(name)
    ]
    detail(
        f"context {api.access.context} ({api.name}): {text.count(len(found), 'node')} selected, {text.count(len(pods), 'pod')} in namespace {cluster.namespace}"
    )
    if not found:
        raise NodesError("--failed-of: none of its hosts are selected: select them with -i")
    return found


def settled(options: ConnectionOptions, hosts: Iterable[str]) -> dict[str, Target]:
    """Return nodes after a reboot, once they can be reached or time is over: the DaemonSet may have made new pods."""
    end = time.monotonic() + SETTLING_SECONDS
    asked = replace(options, inventory=",".join(hosts), limit=None, failed_of="", only=None)
    while True:
        with suppress(NodesError):
            found = {target.name: target for target in selected(asked, lambda _text: None)}
            if time.monotonic() > end or not any(target.problem for target in found.values()):
                return found
        if time.monotonic() > end:
            return {}
        time.sleep(LOOK_SECONDS)


def _nodes(api: Api, spec: str | None) -> dict[str, Any]:
    """Return the status of each node that -i names, by name. Raise ApiError, NodesError, InventoryError."""
    named, chosen = (spec or SELECTOR).strip(), None
    if named.startswith(SELECTOR):
        selector = named[len(SELECTOR) :].strip()
    else:
        selector, chosen = "", patterns.expand(named)
    every = api.items("/api/v1/nodes", {"labelSelector": selector} if selector else {})
    found = {str(each["metadata"]["name"]): each.get("status") or {} for each in every}
    if not found:
        told = f"has the labels {text.plain(selector)!r}" if selector else "is there"
        raise NodesError(f"-i: no node of {api.name} {told} (kubectl get nodes --show-labels)")
    if chosen is None:
        return found
    wrong = next((name for name in chosen if name not in found), None)
    if wrong is not None:
        near = text.alike(wrong, found, 1)
        asks = f": did you mean {near[0]}?" if near else ""
        raise NodesError(f"-i: no node is named {text.plain(wrong)!r}{asks} (a label selector begins with {SELECTOR})")
    return {name: found[name] for name in chosen}


def _pods(api: Api, namespace: str) -> dict[str, Any]:
    """Return the newest pod of the DaemonSet on each node. Raise ApiError."""
    selector = ",".join(f"{name}={value}" for name, value in pod.LABELS.items())
    every = api.items(f"/api/v1/namespaces/{namespace}/pods", {"labelSelector": selector})
    alive = [each for each in every if not each["metadata"].get("deletionTimestamp")]
    by_age = sorted(alive, key=lambda each: str(each["metadata"].get("creationTimestamp")))
    return {str((each.get("spec") or {}).get("nodeName")): each for each in by_age}


def _target(name: str, status: dict[str, Any], found: Any, cluster: Cluster) -> Target:
    """Return a node as a host whose address is its pod: empty if it gets one of its own."""
    problem = _not_ready(status.get("conditions") or [])
    if problem:
        return Target(name, connection=CONNECTION, problem=problem, problem_state="unreachable")
    if found is not None:
        state = _state(found.get("status") or {})
        pod_name = str(found["metadata"]["name"])
        if state == "Running":
            return Target(name, address=pod_name, connection=CONNECTION)
        if not cluster.image:
            told = f"its pod {cluster.namespace}/{pod_name} is {text.plain(state)}, not Running (kubectl describe pod)"
            return Target(name, connection=CONNECTION, problem=told, problem_state="no pod")
    if cluster.image:
        return Target(name, connection=CONNECTION)
    told = f"the DaemonSet has no pod on it in namespace {cluster.namespace}: install the chart, or give an image with --image"
    return Target(name, connection=CONNECTION, problem=told, problem_state="no pod")


def _state(status: dict[str, Any]) -> str:
    """Return the pod's state; one whose container fails again and again has the phase Running, too."""
    every = (
        each.get("state") or {} for each in status.get("containerStatuses") or [] if each.get("name") == pod.CONTAINER
    )
    state = next(every, {})
    stopped = state.get("waiting") or state.get("terminated") or {}
    return str(stopped.get("reason") or status.get("phase"))


def _not_ready(conditions: Iterable[Any]) -> str:
    ready: dict[str, Any] = next((each for each in conditions if each.get("type") == "Ready"), {})
    if ready.get("status") == "True":
        return ""
    reason = text.plain(ready.get("message") or ready.get("reason") or "it has never reported", 200)
    return f"the node is not Ready: {reason}"
