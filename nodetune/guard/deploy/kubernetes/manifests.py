"""`nodetune guard manifests`: what it prints, as YAML. No cluster is asked."""

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from nodetune.config import profile
from nodetune.foundation.request import RequestError
from nodetune.guard.deploy import policy
from nodetune.guard.deploy.kubernetes import access, alerts, pods, rules
from nodetune.guard.deploy.request import ManifestsRequest
from nodetune.guard.node.condition import ALL

Object = dict[str, Any]
LEFT_OUT = ("clear", "fixes", "alerts", "verify")
"""Kinds that only their own name prints."""


def text(request: ManifestsRequest) -> str:
    """Return the manifests. Raise RequestError or yaml_lines.FileError."""
    made = {
        "daemonset": daemon_set,
        "clear": clear,
        "fixes": fixes,
        "verify": verify,
        "npd": detector,
        "nrc": readiness,
        "dra": device_taints,
        "alerts": alert_rules,
    }
    kinds = [kind for kind in made if request.kind == kind or (request.kind == "all" and kind not in LEFT_OUT)]
    if request.kind == "all" and not request.device:
        kinds.remove("dra")
    return dump(each for kind in kinds for each in made[kind](request))


def dump(objects: Iterable[Object]) -> str:
    return "".join(f"---\n{yaml.dump(each, Dumper=_Dumper, sort_keys=False, width=120)}" for each in objects)


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as such, and everything in full: no anchors."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


_Dumper.add_representer(
    str,
    lambda dumper, data: dumper.represent_scalar("tag:yaml.org,2002:str", data, style="|" if "\n" in data else None),
)


def daemon_set(request: ManifestsRequest) -> list[Object]:
    """Return the guard itself, with its namespace. Raise RequestError or yaml_lines.FileError."""
    _need(request, access.OLDEST, "an older API server does not say on which node a pod runs")
    made = guard_policy(request)
    known = enforceable(made)
    unknown = [each for each in request.enforce if each not in known]
    if unknown:
        raise RequestError(f"--enforce: {unknown[0]!r} is not a gating check: there are {', '.join(known)}")
    return [
        namespace(),
        *access.guarding(access.NAMESPACE),
        *access.admission(access.NAMESPACE),
        pods.config(access.NAMESPACE, pods.policy_text(made)),
        pods.daemon_set(
            access.NAMESPACE,
            pods.PodSettings(request.image, ",".join(request.enforce), request.node_selector, _promised(request)),
        ),
    ]


def _promised(request: ManifestsRequest) -> str:
    """Return how many GPUs the labels of the nodes promise at least."""
    return "1" if request.node_selector.get(pods.GPU_LABEL) == "true" else "0"


def enforceable(made: Mapping[str, Any]) -> list[str]:
    """Return what may be enforced of a policy: its checks, or all of them."""
    return [*(each["id"] for each in made["checks"]), ALL]


def guard_policy(request: ManifestsRequest) -> dict[str, Any]:
    """Return the policy of all nodes: no node is asked. Raise yaml_lines.FileError."""
    selection = request.selection
    site = selection.site_of("") if selection else None
    names = (selection.profiles if selection else ()) or (site.profile if site else ()) or ("training",)
    resolved = profile.resolve(profile.named(names), site)
    policy.require_gateable(resolved, site)
    return policy.checked(resolved, "", {})


def namespace() -> Object:
    """Return the namespace: the check is privileged, which only such a namespace admits."""
    made = access.named(access.NAMESPACE)
    levels = {f"pod-security.kubernetes.io/{mode}": "privileged" for mode in ("enforce", "audit", "warn")}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {**made, "labels": {**made["labels"], **levels}}}


def clear(request: ManifestsRequest) -> list[Object]:
    """Return the Job that removes the condition from all nodes, with its rights."""
    return [*access.clearing(access.NAMESPACE, pods.CLEAR), pods.clear_job(access.NAMESPACE, request.image)]


def fixes(_request: ManifestsRequest) -> list[Object]:
    """Return an account that may apply fixes, for a controller that has no administrator's credential."""
    return access.fixing(access.NAMESPACE)


def verify(request: ManifestsRequest) -> list[Object]:
    """Return the Job that measures a node once nothing else has its GPUs."""
    return [pods.verify_job(access.NAMESPACE, request.image, request.gpus, request.node_selector)]


def alert_rules(_request: ManifestsRequest) -> list[Object]:
    return [alerts.rule(access.NAMESPACE)]


def detector(_request: ManifestsRequest) -> list[Object]:
    return [rules.detector(access.NAMESPACE)]


def readiness(request: ManifestsRequest) -> list[Object]:
    return rules.readiness(request.node_selector)


def device_taints(request: ManifestsRequest) -> list[Object]:
    """Return a rule for each device. Raise RequestError."""
    _need(request, rules.DEVICE_TAINTS, "before, the scheduler ignores a DeviceTaintRule, or panics")
    if not request.device:
        raise RequestError("--kind dra needs --device POOL/DEVICE, as `kubectl get resourceslices -o yaml` names them")
    return [rules.device_taint(*each.split("/")) for each in request.device]


def _need(request: ManifestsRequest, oldest: tuple[int, int], why: str) -> None:
    if request.version < oldest:
        raise RequestError(f"needs Kubernetes {oldest[0]}.{oldest[1]}, not {request.kubernetes}: {why}")
