"""The pods of the guard: the DaemonSet, and the Jobs that clear the condition and measure a node. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nodetune.guard.deploy.kubernetes.access import LABELS, NAME, named
from nodetune.guard.deploy.paths import ETC, POLICY, PROGRAM
from nodetune.guard.node.invocation import GIVEN
from nodetune.guard.node.report import TOKENS

COMPONENT = "app.kubernetes.io/component"
DAEMON_SET, CLEAR, VERIFY, CONFIG = "nodetune-node", "nodetune-clear", "nodetune-verify", "nodetune-guard"
START = ["python3", "-I", "-S", "-B", f"{PROGRAM}/nodetune/guard/node/__main__.py"]
RESULT, STATE, HOST, RUN = "/result", "/state", "/host", "/run/nodetune"
GPU_LABEL = "nvidia.com/gpu.present"
TOKEN_SECONDS = 3600
MEASURED = ("nvidia.com/gpu", "node.kubernetes.io/unschedulable")
"""Taints of nodes that may be measured: a cordoned node, too."""

UNPRIVILEGED = {
    "runAsNonRoot": True,
    "runAsUser": 65532,
    "runAsGroup": 65532,
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}

RESOURCES = {
    "check": {"requests": {"cpu": "10m", "memory": "40Mi"}, "limits": {"memory": "400Mi"}},
    "reporter": {"requests": {"cpu": "5m", "memory": "24Mi"}, "limits": {"memory": "100Mi"}},
}


@dataclass(frozen=True)
class PodSettings:
    """An operator's choices for the pods of the DaemonSet. In the chart these are templates of Helm, and so texts."""

    image: str
    enforce: str
    node_selector: Any
    gpus: str = GIVEN["gpus"]
    """How many GPUs the labels of the nodes promise."""
    every: str = GIVEN["every"]
    tolerations: Any = ({"operator": "Exists"},)
    priority_class: str = "system-node-critical"
    resources: Mapping[str, Any] = field(default_factory=RESOURCES.copy)
    pull_secrets: Any = ()
    annotations: Any = None


def config(namespace: str, policy: str) -> dict[str, Any]:
    """Return the ConfigMap with the guard's policy."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": named(CONFIG, namespace),
        "data": {"guard.json": policy},
    }


def policy_text(policy: Mapping[str, Any]) -> str:
    """Return the policy without what differs from one time to the next."""
    return json.dumps({**policy, "host": "", "time": 0}, indent=1) + "\n"


def daemon_set(namespace: str, wanted: PodSettings) -> dict[str, Any]:
    """Return the DaemonSet: a privileged check without a token, and a reporter with a token and nothing else."""
    labels = {**LABELS, COMPONENT: "node"}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {**named(DAEMON_SET, namespace), "labels": labels},
        "spec": {
            "selector": {"matchLabels": {"app.kubernetes.io/name": "nodetune", COMPONENT: "node"}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
            "template": {
                "metadata": {"labels": labels, **({"annotations": wanted.annotations} if wanted.annotations else {})},
                "spec": {
                    "serviceAccountName": NAME,
                    "automountServiceAccountToken": False,
                    "hostPID": True,
                    "hostNetwork": True,
                    "priorityClassName": wanted.priority_class,
                    "terminationGracePeriodSeconds": 5,
                    **_pulled(wanted.pull_secrets),
                    "nodeSelector": wanted.node_selector,
                    "tolerations": _list(wanted.tolerations),
                    "containers": [_check(wanted), _reporter(wanted)],
                    "volumes": [
                        {"name": "host", "hostPath": {"path": "/", "type": "Directory"}},
                        {"name": "run", "emptyDir": {"medium": "Memory", "sizeLimit": "2Mi"}},
                        {"name": "policy", "configMap": {"name": CONFIG}},
                        {"name": "result", "emptyDir": {"medium": "Memory", "sizeLimit": "2Mi"}},
                        {"name": "state", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
                        _token(),
                    ],
                },
            },
        },
    }


def _pulled(secrets: Any) -> dict[str, Any]:
    return {"imagePullSecrets": _list(secrets)} if secrets else {}


def _list(values: Any) -> Any:
    return values if isinstance(values, str) else list(values)


def _check(wanted: PodSettings) -> dict[str, Any]:
    places = ["--policy", POLICY, "--run", f"{RUN}/guard", "--kept", "", "--result", RESULT, "--host", HOST]
    return {
        "name": "check",
        "image": wanted.image,
        "command": [*START, "looks", *places, "--every", wanted.every, "--gpus", wanted.gpus],
        "env": [_node_name()],
        "resources": wanted.resources["check"],
        "securityContext": {"privileged": True, "readOnlyRootFilesystem": True},
        "volumeMounts": [
            {"name": "host", "mountPath": HOST, "readOnly": True, "mountPropagation": "HostToContainer"},
            {"name": "run", "mountPath": RUN},
            {"name": "policy", "mountPath": ETC, "readOnly": True},
            {"name": "result", "mountPath": RESULT},
        ],
        **_probes(RESULT),
    }


def _probes(folder: str) -> dict[str, Any]:
    """Return the probes of a container that leaves its state in a folder: it restarts if that ages, and is ready if it judges."""

    def probe(word: str, seconds: int, delay: int) -> dict[str, Any]:
        asked = {"exec": {"command": [*START, word, "--result", folder]}, "timeoutSeconds": 10, "failureThreshold": 3}
        return {**asked, "periodSeconds": seconds, "initialDelaySeconds": delay}

    return {"livenessProbe": probe("alive", 60, 120), "readinessProbe": probe("ready", 30, 5)}


def _reporter(wanted: PodSettings) -> dict[str, Any]:
    return {
        "name": "reporter",
        "image": wanted.image,
        "command": [*START, "report", "--result", RESULT, "--state", STATE, "--enforce", wanted.enforce],
        "env": [_node_name()],
        "resources": wanted.resources["reporter"],
        "securityContext": UNPRIVILEGED,
        "volumeMounts": [
            {"name": "result", "mountPath": RESULT, "readOnly": True},
            {"name": "state", "mountPath": STATE},
            {"name": "token", "mountPath": TOKENS, "readOnly": True},
        ],
        **_probes(STATE),
    }


def _node_name() -> dict[str, Any]:
    return {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}


def _token() -> dict[str, Any]:
    """Return the volume with a token of this pod, and what the API server's certificate is checked with."""
    sources = [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": TOKEN_SECONDS}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    ]
    return {"name": "token", "projected": {"sources": sources}}


def clear_job(namespace: str, image: str, pull_secrets: Any = ()) -> dict[str, Any]:
    """Return the Job that removes the condition from all nodes."""
    container = {
        "name": "clear",
        "image": image,
        "command": [*START, "clear"],
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "300Mi"}},
        "securityContext": UNPRIVILEGED,
        "volumeMounts": [{"name": "token", "mountPath": TOKENS, "readOnly": True}],
    }
    limits = {"backoffLimit": 3, "activeDeadlineSeconds": 240, "ttlSecondsAfterFinished": 600}  # Helm waits for 300
    pod = {
        "serviceAccountName": CLEAR,
        **_pulled(pull_secrets),
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "volumes": [_token()],
    }
    return _job(named(CLEAR, namespace), limits, container, pod)


def verify_job(namespace: str, image: str, gpus: int, node_selector: Any) -> dict[str, Any]:
    """Return the Job that runs `nodetune verify` in a pod with all GPUs of a node: it waits until all of them are free."""
    folders = {"tmp": "/tmp", "shm": "/dev/shm"}  # noqa: S108  (of the pod alone)
    container = {
        "name": "verify",
        "image": image,
        "command": ["nodetune", "verify"],
        "env": [{"name": "HOME", "value": folders["tmp"]}],
        "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
        "securityContext": UNPRIVILEGED,
        "volumeMounts": [{"name": name, "mountPath": path} for name, path in folders.items()],
    }
    pod = {
        "enableServiceLinks": False,
        "nodeSelector": node_selector,
        "tolerations": [{"key": key, "operator": "Exists"} for key in MEASURED],
        "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "shm", "emptyDir": {"medium": "Memory"}}],
    }
    return _job(named(VERIFY, namespace), {"backoffLimit": 0}, container, pod)


def _job(
    about: dict[str, Any], limits: Mapping[str, int], container: Mapping[str, Any], pod: Mapping[str, Any]
) -> dict[str, Any]:
    labels = {**LABELS, COMPONENT: container["name"]}
    alone = {"automountServiceAccountToken": False, "restartPolicy": "Never", "containers": [container]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {**about, "labels": labels},
        "spec": {**limits, "template": {"metadata": {"labels": labels}, "spec": {**alone, **pod}}},
    }
