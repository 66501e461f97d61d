"""The pod through which a fix reaches the host of a node: made when it is needed, and again where a reboot has ended it."""

import math
import secrets
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from nodetune.hosts.connection_options import MAX_FORKS, Cluster, SessionOptions
from nodetune.hosts.target import Target, UnreachableError
from nodetune.onhost.host_command import WORK
from nodetune.remote.kubernetes import pod
from nodetune.remote.kubernetes.api import Api, ApiError, connected
from nodetune.remote.kubernetes.host_shell import HostShell
from nodetune.remote.login.deadline import Deadline

OURS = {"app.kubernetes.io/name": "nodetune", "app.kubernetes.io/component": "fix"}
START_SECONDS = 120.0
"""How long a pod may take to start, unless a session may take longer."""

GRACE_SECONDS = 900
"""How long a command that is changing the host may go on after the end of the run: initramfs takes minutes."""

WAIT = f"""import os, signal, time
signal.signal(signal.SIGTERM, lambda *_: None)
signal.pause()
def runs(folder):
    if os.path.exists(folder + "/status") or not os.path.exists(folder + "/pid"):
        return False
    return os.path.exists("/proc/" + open(folder + "/pid").read())
while any(runs("{WORK}/" + name) for name in os.listdir("{WORK}")):
    time.sleep(0.1)
"""
"""The program of the pod: before it ends, it lets the commands end that were started in it."""

ENDED = ("Failed", "Succeeded")
NO_POD, CONFLICT = 404, 409


@dataclass(frozen=True)
class HostPod:
    """A pod of this name on a node. It ends itself after this many seconds, even if its controller has died.

    `session_seconds`: what --timeout allows for a session.
    """

    node: str
    name: str
    image: str
    namespace: str
    context: str | None
    seconds: float
    session_seconds: float = SessionOptions.seconds

    @property
    def start_seconds(self) -> float:
        return max(START_SECONDS, self.session_seconds)

    @property
    def pods(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"


def manifest(wanted: HostPod) -> dict[str, Any]:
    """Return the pod: it may enter the host, has no token and no limit of memory, and comes back after a reboot."""
    made = pod.manifest(wanted.image, wanted.node, wanted.seconds + wanted.start_seconds)
    made["metadata"] = {"name": wanted.name, "labels": OURS}
    made["spec"].update(
        restartPolicy="Always", priorityClassName="system-node-critical", terminationGracePeriodSeconds=GRACE_SECONDS
    )
    made["spec"]["volumes"] = [{"name": "work", "emptyDir": {"medium": "Memory"}}]
    made["spec"]["containers"][0]["volumeMounts"] = [{"name": "work", "mountPath": WORK}]
    made["spec"]["containers"][0]["command"][-1] = WAIT
    return made


def shell(wanted: HostPod, most: tuple[int, int, int]) -> HostShell:
    """Return a shell on the host, in the pod that is there or a new one. Raise UnreachableError, KubeconfigError."""
    api, deadline = connected(wanted.context), Deadline(wanted.start_seconds)
    try:
        if not _is_there(api, wanted):
            _make(api, wanted)
            pod.wait(api, f"{wanted.pods}/{wanted.name}", deadline)
    except ApiError as problem:
        raise pod.failed(problem, deadline) from None
    return HostShell(api, wanted.namespace, wanted.name, most, wanted.session_seconds)


def _make(api: Api, wanted: HostPod) -> None:
    """Make the pod; one that was made meanwhile is ours. Raise ApiError."""
    try:
        api.request("POST", wanted.pods, manifest(wanted))
    except ApiError as problem:
        if problem.status != CONFLICT:
            raise


def _is_there(api: Api, wanted: HostPod) -> bool:
    """Return whether the pod runs. Remove one that has ended. Raise ApiError."""
    try:
        phase = (api.request("GET", f"{wanted.pods}/{wanted.name}").get("status") or {}).get("phase")
    except ApiError as problem:
        if problem.status == NO_POD:
            return False
        raise
    if phase in ENDED:
        _remove(api, wanted.namespace, wanted.name, {"gracePeriodSeconds": "0"})
    return phase == "Running"


def _remove(api: Api, namespace: str, name: str, query: Mapping[str, str] | None = None) -> None:
    with suppress(ApiError):  # it ends by itself
        api.request("DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}", query=query)


class HostPods:
    """The pods of one play. None is made here: the connection to a host makes its own."""

    def __init__(self, cluster: Cluster, seconds: float, session_seconds: float) -> None:
        self._cluster, self._seconds, self._names = cluster, seconds, list[str]()
        self._session_seconds = session_seconds

    def variables(self, target: Target) -> dict[str, Any]:
        """Return the variables of Ansible's connection. Raise UnreachableError, KubeconfigError."""
        wanted = HostPod(
            target.name,
            f"nodetune-fix-{secrets.token_hex(5)}",
            self._cluster.image or self._image(target),
            self._cluster.namespace,
            self._cluster.context,
            math.ceil(self._seconds),
            self._session_seconds,
        )
        self._names.append(wanted.name)
        given = {f"nodetune_pod_{name}": value for name, value in asdict(wanted).items() if value is not None}
        return {"ansible_host": wanted.node, **given}

    def _image(self, target: Target) -> str:
        """Return the image of the DaemonSet's pod on a node, which the node has."""
        path = f"/api/v1/namespaces/{self._cluster.namespace}/pods/{target.address}"
        try:
            spec = connected(self._cluster.context).request("GET", path).get("spec") or {}
        except ApiError as problem:
            raise UnreachableError(pod.STATES.get(problem.status, "no pod"), str(problem)) from None
        return str(next(each["image"] for each in spec["containers"] if each["name"] == pod.CONTAINER))

    def close(self) -> None:
        """Remove the pods that were made."""
        if not self._names:
            return
        api = connected(self._cluster.context)
        with ThreadPoolExecutor(MAX_FORKS) as threads:
            list(threads.map(lambda name: _remove(api, self._cluster.namespace, name), self._names))
