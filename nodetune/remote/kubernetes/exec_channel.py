"""A session with a program in a pod by `exec`: the script goes in, the answer comes out, as over SSH."""

import json
import socket
from contextlib import suppress
from typing import Any, Protocol

from nodetune.foundation import text as plain_text
from nodetune.hosts.connection_options import Cluster
from nodetune.hosts.target import Target, UnreachableError
from nodetune.remote.kubernetes import pod
from nodetune.remote.kubernetes.api import BUSY, Api, ApiError, connected, said
from nodetune.remote.kubernetes.websocket import CHUNK, STATUS, STDERR, STDOUT, Channels, RefusedError
from nodetune.remote.login.deadline import Deadline
from nodetune.remote.login.session import Session

PROGRAM = ("python3", "-I", "-S", "-c", "import os; f = os.fdopen(0, 'rb', 0); exec(f.readline())")
"""Reads the script by its length and leaves standard input open: its end means that we have left."""

BUSY_SECONDS = 2.0

HOST_ROOT = "nodetune: "
"""How a program in a pod begins the line that says why it cannot work."""


class Talk(Protocol):
    """One side of a session: the data to send, and where the answer goes."""

    to_send: memoryview
    most_bytes: int

    @property
    def complete(self) -> bool:
        """Whether nothing more is waited for."""

    @property
    def waiting_for(self) -> str:
        """The pending step, for the message of a deadline."""

    def sent(self, count: int) -> None: ...
    def output(self, data: bytes) -> None: ...
    def errors(self, data: bytes) -> None: ...
    def last_error(self) -> str: ...


def run(target: Target, session: Session, cluster: Cluster, deadline: Deadline) -> int | None:
    """Run the session in the pod of a node, or in one that lives as long. Return its exit status. Raise UnreachableError."""
    api = connected(cluster.context)
    if target.address:
        return _converse(api, cluster.namespace, target.address, session, deadline)
    with pod.on_node(api, cluster, target.name, deadline) as name:
        return _converse(api, cluster.namespace, name, session, deadline)


def _converse(api: Api, namespace: str, name: str, session: Session, deadline: Deadline) -> int | None:
    deadline.stage = f"opening a session in pod {namespace}/{name}"
    try:
        channels, connection = opened(api, namespace, name, deadline)
    except ApiError as problem:
        raise pod.failed(problem, deadline) from None
    status: list[bytes] = []
    try:
        carry(channels, connection, session, status, deadline)
    except (OSError, ValueError) as problem:
        deadline.left()  # which says so if it is the cause
        raise UnreachableError("dropped", f"the session in pod {name} broke: {said(problem)}") from None
    finally:
        connection.close()
    return None if session.complete else exit_status(b"".join(status), session)


def opened(api: Api, namespace: str, name: str, deadline: Deadline) -> tuple[Channels, socket.socket]:
    """Return the open session. While the server is too busy, ask again. Raise ApiError, UnreachableError."""
    query = [("container", pod.CONTAINER), *(("command", word) for word in PROGRAM)]
    query += [(stream, "true") for stream in ("stdin", "stdout", "stderr")]
    path = api.path(f"/api/v1/namespaces/{namespace}/pods/{name}/exec", query)
    renewed = False
    while True:
        connection = api.connected(deadline.left())
        deadline.on_end(lambda: connection.shutdown(socket.SHUT_RDWR))  # noqa: B023  (the one of this round)
        try:
            channels = Channels(connection)
            channels.open(api.name, path, api.headers())
        except RefusedError as problem:
            connection.close()
            if problem.status == 401 and not renewed and api.renew():
                renewed = True
            elif problem.status != BUSY:
                raise ApiError(problem.status, api.refused(problem.status, _message(str(problem)))) from None
            else:
                deadline.pause(BUSY_SECONDS)
        except (OSError, ValueError) as problem:
            connection.close()
            deadline.left()
            raise ApiError(0, f"the API server {api.name} did not open a session: {said(problem)}") from None
        else:
            return channels, connection


def carry(
    channels: Channels, connection: socket.socket, session: Talk, status: list[bytes], deadline: Deadline
) -> None:
    """Send what there is to send and take what comes, until the answer is complete or the program has ended."""
    while not (session.complete or channels.closed):
        deadline.stage = session.waiting_for
        connection.settimeout(deadline.left())
        if session.to_send and not channels.waiting():
            part = session.to_send[:CHUNK]
            channels.send(part)
            session.sent(len(part))
            continue
        for channel, data in channels.receive():
            if channel == STDOUT:
                session.output(data)
            elif channel == STDERR:
                session.errors(data)
            elif channel == STATUS and sum(map(len, status)) < session.most_bytes:
                status.append(data)


def exit_status(content: bytes, session: Talk) -> int | None:
    """Return the exit status of a program that gave no answer. Raise UnreachableError if it says why, or did not start."""
    last = session.last_error()
    if last.startswith(HOST_ROOT):
        raise UnreachableError("no privilege", last[len(HOST_ROOT) :])
    try:
        found: dict[str, Any] = json.loads(content)
        if found.get("status") == "Success":
            return 0
        causes = (found.get("details") or {}).get("causes") or []
        code = next((each.get("message") for each in causes if each.get("reason") == "ExitCode"), None)
        if code is not None and str(code).isdigit():
            return int(code)
        message = plain_text.plain(found.get("message"), 300)
    except (ValueError, AttributeError, TypeError, RecursionError):
        return None
    raise UnreachableError("no python" if "executable file not found" in message else "unreachable", message)


def _message(body: str) -> str:
    """Return the message in an answer that says no: a Status of Kubernetes, or a page of a proxy."""
    with suppress(ValueError, RecursionError, AttributeError):
        return str(json.loads(body[body.index("{") : body.rindex("}") + 1]).get("message") or "")
    return " ".join(body.split())[:200]
