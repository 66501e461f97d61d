"""The guard's conditions at the API server of Kubernetes: written, and cleared, by one HTTPS request.

A strategic merge patch changes these conditions and keeps all others. Nothing may be read: what the node had before is in the
answer to a patch that changes nothing but a time. The token is read each time: the kubelet replaces the file before the token ends.
"""

from __future__ import annotations

import calendar
import http.client
import json
import os
import re
import ssl
import time
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nodetune.foundation import text as plain_text
from nodetune.guard.node.condition import HARDWARE, REASONS, TYPE, TYPES, Condition
from nodetune.onhost import worker

KIND = "application/strategic-merge-patch+json"
TOKEN, CA = "token", "ca.crt"
SECONDS = 10.0
"""For a whole request, however slowly its parts arrive."""
MAX_ANSWER, MAX_REASON, MAX_EVENT = 1 << 16, 300, 1000
COMPONENT, EVENTS = "nodetune-guard", "default"
"""The maker of Events, and the namespace of those about nodes."""
TIME = "%Y-%m-%dT%H:%M:%SZ"
PAGE = 100
"""Nodes that are asked for at a time."""
MAX_WAIT_SECONDS = 600.0
"""Of what a Retry-After may ask for."""


class ApiRefusedError(Exception):
    """The API server did not do what it was asked; the text says why. `wait` is how long the API server asked to wait, or 0."""

    def __init__(self, why: str, wait: float = 0.0) -> None:
        super().__init__(why)
        self.wait = wait


@dataclass(frozen=True)
class Server:
    """The API server as a pod sees it. `folder` has the token and the certificate of its authority."""

    host: str
    port: int
    folder: str

    @classmethod
    def of(cls, environment: Mapping[str, str], folder: str) -> Server:
        """Return the server that the kubelet names. Raise KeyError or ValueError."""
        return cls(environment["KUBERNETES_SERVICE_HOST"], int(environment["KUBERNETES_SERVICE_PORT"]), folder)

    def patch(self, node: str, condition: Condition, since: float) -> dict[str, Any]:
        """Write the condition; `since` is when its status began. Return our conditions by type. Raise ApiRefusedError."""
        return self._patch(node, _body(condition, since), _memory())

    def touch(self, node: str, hardware: str = "") -> dict[str, Any]:
        """Write how much hardware the node has (empty: as it is). Return our conditions by type. Raise ApiRefusedError."""
        return self._patch(node, _memory(hardware))

    def tell(self, node: str, condition: Condition) -> None:
        """Make an Event of the node. Raise ApiRefusedError."""
        self._ask("POST", f"/api/v1/namespaces/{EVENTS}/events", json.dumps(_event(node, condition)).encode())

    def clear(self, node: str) -> None:
        """Remove the conditions. Raise ApiRefusedError."""
        self._patch(node, *({"type": each, "$patch": "delete"} for each in TYPES))

    def _patch(self, node: str, *told: Mapping[str, Any]) -> dict[str, Any]:
        path = f"/api/v1/nodes/{urllib.parse.quote(node, safe='')}/status"
        found: dict[str, Any] = self._ask("PATCH", path, json.dumps({"status": {"conditions": told}}).encode())
        return found

    def with_condition(self) -> list[str]:
        """Return the names of the nodes that have one of the conditions, in whatever state. Raise ApiRefusedError."""
        found: list[str] = []
        after = ""
        while True:
            names, after = self._ask("GET", f"/api/v1/nodes?limit={PAGE}" + (f"&continue={after}" if after else ""))
            found += names
            if not after:
                return found

    def _ask(self, method: str, path: str, body: bytes | None = None) -> Any:
        """Return what the answer says, in a child: a server that sends a byte now and then keeps nobody."""
        try:
            why, wait, said = worker.ask(lambda _: self._send(method, path, body), SECONDS, "the API server")
        except (worker.NoAnswerError, OSError) as problem:
            raise ApiRefusedError(plain_text.plain(problem, MAX_REASON)) from None
        if why:
            raise ApiRefusedError(plain_text.plain(why, MAX_REASON), wait)
        return said

    def _send(self, method: str, path: str, body: bytes | None) -> tuple[str, float, Any]:
        """Return why the server refused it, how long it asked to wait, and what it said. Raise OSError and others."""
        with open(os.path.join(self.folder, TOKEN), encoding="ascii") as file:
            token = file.read().strip()
        if not re.fullmatch("[!-~]+", token):  # the message of http.client would have it
            raise ValueError(f"{file.name} is not a token")
        trusted = ssl.create_default_context(cafile=os.path.join(self.folder, CA))
        # twice as long: whoever waits for this process gives up first, and says so
        there = http.client.HTTPSConnection(self.host, self.port, timeout=2 * SECONDS, context=trusted)
        headers = {"Authorization": f"Bearer {token}", "User-Agent": COMPONENT}
        kinds = {"PATCH": {"Content-Type": KIND}, "POST": {"Content-Type": "application/json"}}
        there.request(method, path, body, {**headers, **kinds.get(method, {})})
        answer = there.getresponse()
        if answer.status not in (http.client.OK, http.client.CREATED):
            return _refused(answer), _wait(answer.headers), None
        return "", 0.0, READ[method](json.load(answer))


def _nodes(listed: Any) -> tuple[list[str], str]:
    """Return the nodes of a page that have the condition, and what the next page is asked with."""
    named = [
        str(node["metadata"]["name"])
        for node in listed["items"]
        if any(each.get("type") in TYPES for each in node["status"].get("conditions") or ())
    ]
    return named, urllib.parse.quote(str(listed["metadata"].get("continue") or ""), safe="")


def _ours(node: Any) -> dict[str, Any]:
    """Return our conditions of a node by type."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    return {each["type"]: each for each in conditions if each.get("type") in TYPES}


READ: Mapping[str, Callable[[Any], Any]] = {"GET": _nodes, "PATCH": _ours, "POST": lambda _: None}
"""The part of an answer that is used."""


def _memory(hardware: str = "") -> dict[str, str]:
    """Return the memory as a condition: False as all that are well, so that no alert takes it for a problem."""
    now = _time(time.time())
    told = {"reason": "HardwareSeen", "message": hardware, "lastTransitionTime": now} if hardware else {}
    return {"type": HARDWARE, "status": "False", "lastHeartbeatTime": now, **told}


def _event(node: str, condition: Condition) -> dict[str, Any]:
    now = _time(time.time())
    return {
        "metadata": {"generateName": "nodetune-guard-", "namespace": EVENTS},
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": node, "uid": node},  # as the kubelet's
        "type": "Normal" if condition.reason == REASONS["False"] else "Warning",
        "reason": condition.reason,
        "message": condition.message[:MAX_EVENT],
        "source": {"component": COMPONENT, "host": node},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }


def _body(condition: Condition, since: float) -> dict[str, str]:
    return {
        "type": TYPE,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastHeartbeatTime": _time(time.time()),
        "lastTransitionTime": _time(since),
    }


def _time(seconds: float) -> str:
    return time.strftime(TIME, time.gmtime(seconds))


def begun(condition: Mapping[str, Any]) -> float:
    """Return when the status of a condition began, in Unix seconds; now if it does not say."""
    try:
        return float(calendar.timegm(time.strptime(str(condition.get("lastTransitionTime")), TIME)))
    except ValueError:
        return time.time()


def _refused(answer: http.client.HTTPResponse) -> str:
    said: Any = plain_text.json_object(answer.read(MAX_ANSWER).decode("utf-8", "replace")).get("message", "")
    return f"{answer.status} {answer.reason}: {said}".rstrip(": ")


def _wait(headers: http.client.HTTPMessage) -> float:
    text = headers.get("Retry-After", "")
    return min(float(text), MAX_WAIT_SECONDS) if text.isascii() and text.isdigit() else 0.0
