"""The JSON schema of the chart's values: Helm holds every install and upgrade to it. Pure."""

from collections.abc import Sequence
from typing import Any

from nodetune.guard.deploy.kubernetes import pods
from nodetune.guard.deploy.request import IMAGE
from nodetune.guard.node.report import STALE_SECONDS

DNS = r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?"
NAME = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
KEY = rf"^({DNS}/)?{NAME}$"
"""The name of a label, an annotation or a taint."""

QUANTITY = r"^([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][0-9]+|m|k|[MGTPE]|[KMGTPE]i)?$"
LEAST_SECONDS = 10
"""The checks of one look may take nearly as long."""


def schema(enforceable: Sequence[str]) -> dict[str, Any]:
    """Return it. `enforceable`: the checks of the policy that the chart has, and `all`."""
    boolean = {"type": "boolean"}
    properties = {
        "image": _text(rf"^({IMAGE})?$"),
        "digest": _text("^(sha256:[0-9a-f]{64})?$"),
        "imagePullSecrets": _list(_object({"name": _text(f"^{DNS}$")}, needed=True)),
        "enforce": {**_list(_text("^[a-z0-9]+(-[a-z0-9]+)*$")), "uniqueItems": True},
        "interval": {"type": "integer", "minimum": LEAST_SECONDS, "exclusiveMaximum": int(STALE_SECONDS)},
        "nodeSelector": _map(KEY, _text(rf"^({NAME})?$")),
        "tolerations": _list(_toleration()),
        "priorityClassName": _text(f"^({DNS})?$"),
        "annotations": _map(KEY, {"type": "string"}),
        "resources": _object({name: _resources() for name in pods.RESOURCES}, needed=True),
        "policy": {"type": "string"},
        "fixes": boolean,
        "alerts": boolean,
    }
    own_policy = {"properties": {"policy": {"minLength": 1}}}
    own_digest = {"properties": {"digest": {"minLength": 1}}}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **_object({**properties}, needed=True),
        "properties": {**properties, "global": {"type": "object"}},
        "allOf": [
            {"if": own_policy, "else": {"properties": {"enforce": {"items": {"enum": list(enforceable)}}}}},
            {"if": own_digest, "then": {"properties": {"image": {"pattern": "^[^@]*$"}}}},
        ],
    }


def _text(pattern: str) -> dict[str, Any]:
    return {"type": "string", "pattern": pattern}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _map(names: str, of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "propertyNames": {"pattern": names}, "additionalProperties": of}


def _object(properties: dict[str, Any], *, needed: bool = False) -> dict[str, Any]:
    made = {"type": "object", "additionalProperties": False, "properties": properties}
    return {**made, "required": list(properties)} if needed else made


def _resources() -> dict[str, Any]:
    """Return the schema of a container's resources; a quantity without a unit may be a number."""
    quantity = {"anyOf": [_text(QUANTITY), {"type": "number", "minimum": 0}]}
    kinds = _object(dict.fromkeys(("cpu", "memory", "ephemeral-storage"), quantity))
    return _object({"requests": kinds, "limits": kinds})


def _toleration() -> dict[str, Any]:
    return _object(
        {
            "key": _text(f"^({KEY[1:-1]})?$"),
            "operator": {"enum": ["Exists", "Equal"]},
            "value": _text(rf"^({NAME})?$"),
            "effect": {"enum": ["", "NoSchedule", "PreferNoSchedule", "NoExecute"]},
            "tolerationSeconds": {"type": "integer", "minimum": 0},
        }
    )
