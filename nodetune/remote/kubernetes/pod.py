"""A pod on one node that can see its host, for as long as one session takes."""

import math
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from nodetune.foundation import text as plain_text
from nodetune.hosts.connection_options import Cluster
from nodetune.hosts.target import UnreachableError
from nodetune.remote.kubernetes.api import Api, ApiError
from nodetune.remote.login.deadline import Deadline

CONTAINER = "check"
LABELS = {"app.kubernetes.io/name": "nodetune", "app.kubernetes.io/component": "node"}
"""Of the pods of the DaemonSet."""

OURS = {"app.kubernetes.io/name": "nodetune", "app.kubernetes.io/component": "audit"}
HOPELESS = (
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
)
"""Permanent failures: reasons to wait that waiting does not remove."""

LOOK_SECONDS = 0.3
LONGER_SECONDS = 30
WAIT = "import signal; signal.alarm({seconds}); signal.pause()"
STATES = {401: "authentication failed", 403: "authentication failed"}


def failed(problem: ApiError, deadline: Deadline) -> UnreachableError:
    """Return the error of a node for that of a request. After `dropped` it is asked once more. Raise it if it is too late."""
    deadline.left()
    state = STATES.get(problem.status, "dropped" if problem.status >= 500 else "unreachable")
    return UnreachableError(state, str(problem))


def manifest(image: str, node: str, seconds: float) -> dict[str, Any]:
    """Return the pod: it sees its host, and ends by itself."""
    alive = math.ceil(seconds) + LONGER_SECONDS
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"nodetune-audit-{secrets.token_hex(5)}", "labels": OURS},
        "spec": {
            "nodeName": node,
            "hostPID": True,
            "hostNetwork": True,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "restartPolicy": "Never",
            "activeDeadlineSeconds": alive,
            "terminationGracePeriodSeconds": 1,
            "tolerations": [{"operator": "Exists"}],
            "containers": [
                {
                    "name": CONTAINER,
                    "image": image,
                    "command": ["python3", "-I", "-S", "-c", WAIT.format(seconds=alive)],
                    "securityContext": {"privileged": True, "readOnlyRootFilesystem": True},
                    "volumeMounts": [
                        {"name": "host", "mountPath": "/host", "readOnly": True, "mountPropagation": "HostToContainer"}
                    ],
                }
            ],
            "volumes": [{"name": "host", "hostPath": {"path": "/", "type": "Directory"}}],
        },
    }


@contextmanager
def on_node(api: Api, cluster: Cluster, node: str, deadline: Deadline) -> Iterator[str]:
    """Run a pod on a node, and yield its name. Raise UnreachableError."""
    wanted = manifest(cluster.image or "", node, deadline.left())
    name, pods = wanted["metadata"]["name"], f"/api/v1/namespaces/{cluster.namespace}/pods"
    deadline.stage = f"creating pod {cluster.namespace}/{name}"
    try:
        api.request("POST", pods, wanted, seconds=deadline.left())
    except ApiError as problem:
        raise failed(problem, deadline) from None
    try:
        wait(api, f"{pods}/{name}", deadline)
        yield name
    finally:
        with suppress(ApiError):  # it ends by itself
            api.request("DELETE", f"{pods}/{name}", query={"gracePeriodSeconds": "0"})


def wait(api: Api, path: str, deadline: Deadline) -> None:
    """Wait until the pod runs. Raise UnreachableError if it never will."""
    while True:
        try:
            status = api.request("GET", path, seconds=deadline.left()).get("status") or {}
        except ApiError as problem:
            raise failed(problem, deadline) from None
        reason, told = _why(status)
        if status.get("phase") == "Running":
            return
        if status.get("phase") in ("Failed", "Succeeded") or reason in HOPELESS:
            raise UnreachableError("no pod", f"the pod did not start: {told or status.get('phase')}")
        deadline.stage = f"waiting for its pod to start{f' ({told})' if told else ''}"
        deadline.pause(LOOK_SECONDS)


def _why(status: dict[str, Any]) -> tuple[str, str]:
    """Return the reason why a pod does not run, and its text."""
    waiting = [(each.get("state") or {}).get("waiting") or {} for each in status.get("containerStatuses") or []]
    found = next((each for each in waiting if each.get("reason")), status)
    reason = str(found.get("reason") or "")
    return reason, plain_text.plain(": ".join(filter(None, (reason, str(found.get("message") or "")))), 300)
