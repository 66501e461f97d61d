"""Patch one condition of the guard's own node in Kubernetes: one HTTPS request, no more rights than that needs.

A strategic merge patch changes this condition and keeps all others; nothing is read first. The token is read each time:
the kubelet replaces the file before the token ends.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import ssl
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nodetune.foundation import text as plain_text
from nodetune.guard.node.condition import TYPE, Condition
from nodetune.onhost import worker

KIND = "application/strategic-merge-patch+json"
TOKEN, CA = "token", "ca.crt"
SECONDS = 10.0
"""For a whole request, however slowly its parts arrive."""
LONGEST_ANSWER, LONGEST_WHY = 1 << 16, 300
LONGEST_WAIT = 600.0
"""Of what a Retry-After may ask for."""


class NotPatchedError(Exception):
    """The condition was not written; the text says why. `wait` is how long the API server asked to wait, or 0."""

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

    def patch(self, node: str, condition: Condition, since: float) -> None:
        """Write the condition; `since` is when its status began. Raise NotPatchedError."""
        path = f"/api/v1/nodes/{urllib.parse.quote(node, safe='')}/status"
        body = _body(condition, since)
        try:  # in a child: a server that sends a byte now and then keeps nobody
            why, wait = worker.ask(lambda _: self._send(path, body), SECONDS, "the API server")
        except (worker.NoAnswerError, OSError) as problem:
            raise NotPatchedError(plain_text.plain(problem, LONGEST_WHY)) from None
        if why:
            raise NotPatchedError(plain_text.plain(why, LONGEST_WHY), wait)

    def _send(self, path: str, body: bytes) -> tuple[str, float]:
        """Return why the server refused it, and how long it asked to wait. Raise OSError, ValueError or HTTPException."""
        with open(os.path.join(self.folder, TOKEN), encoding="ascii") as file:
            token = file.read().strip()
        if not re.fullmatch("[!-~]+", token):  # the message of http.client would have it
            raise ValueError(f"{file.name} is not a token")
        trusted = ssl.create_default_context(cafile=os.path.join(self.folder, CA))
        there = http.client.HTTPSConnection(self.host, self.port, timeout=SECONDS, context=trusted)
        headers = {"Authorization": f"Bearer {token}", "Content-Type": KIND, "User-Agent": "nodetune-guard"}
        there.request("PATCH", path, body, headers)
        answer = there.getresponse()
        return ("", 0.0) if answer.status == http.client.OK else (_refused(answer), _wait(answer.headers))


def _body(condition: Condition, since: float) -> bytes:
    told = {
        "type": TYPE,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "lastHeartbeatTime": _time(time.time()),
        "lastTransitionTime": _time(since),
    }
    return json.dumps({"status": {"conditions": [told]}}).encode()


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _refused(answer: http.client.HTTPResponse) -> str:
    said: Any = plain_text.json_object(answer.read(LONGEST_ANSWER).decode("utf-8", "replace")).get("message", "")
    return f"{answer.status} {answer.reason}: {said}".rstrip(": ")


def _wait(headers: http.client.HTTPMessage) -> float:
    text = headers.get("Retry-After", "")
    return min(float(text), LONGEST_WAIT) if text.isascii() and text.isdigit() else 0.0
