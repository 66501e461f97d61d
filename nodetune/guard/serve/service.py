"""The node health-check service that NVIDIA's resiliency extension asks before a rendezvous, by gRPC at a Unix socket.

HealthCheckService.RunHealthCheck of nvhcd.proto (NVIDIA/nvidia-resiliency-ext, shared_utils/proto, version 0.7.0). Its client
excludes a node for a failure and for an answer that it cannot read, so a guard that cannot judge answers as for a healthy node.
"""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from nodetune.foundation import UserError
from nodetune.foundation import text as plain_text
from nodetune.guard import node
from nodetune.guard.node.invocation import GIVEN
from nodetune.guard.serve.request import ServeRequest

PACKAGE, SERVICE, METHOD = "nvhcd", "HealthCheckService", "RunHealthCheck"
FRESH_SECONDS = 5.0
"""Answers within this time come from one look: every user of the node may ask."""
MAX_SECONDS = 45.0
"""For a look. The client waits for 60."""
KEPT = GIVEN["kept"]
FOR_ALL = 0o666
"""Jobs of all users ask."""
PROGRAM = Path(node.__path__[0]) / "__main__.py"


@dataclass(frozen=True)
class Response:
    """The response, with its fields as in nvhcd.proto. `output` is JSON."""

    success: bool
    exit_code: int
    output: str
    error: str = ""


def answer(result: Mapping[str, Any]) -> Response:
    """Return the answer for the result of a look. Pure."""
    failed = [str(each) for each in result.get("checks") or ()] if result.get("verdict") == "fail" else []
    counting = failed if result.get("mode") == "enforce" else []
    reason = plain_text.plain(result.get("reason") or "", 500)
    said = {"fail_count": len(counting), "failed_checks": counting, "verdict": result.get("verdict"), "reason": reason}
    if failed and not counting:
        said["observed_checks"] = failed
    return Response(not counting, int(bool(counting)), json.dumps(said), reason if counting else "")


class CheckRunner:
    """Looks at the node, one at a time."""

    def __init__(self, request: ServeRequest) -> None:
        self._request = request
        self._last: Response | None = None
        self._until = 0.0

    def answer(self) -> Response:
        if self._last is None or time.monotonic() > self._until:
            self._last = answer(self._look())
            self._until = time.monotonic() + FRESH_SECONDS
        return self._last

    def _look(self) -> Mapping[str, Any]:
        """Look in a process of its own: one that serves must not fork."""
        options = [
            "--policy",
            str(self._request.policy),
            "--run",
            str(self._request.state),
            "--kept",
            KEPT,
            "--host",
            "/",
        ]
        command = [sys.executable, "-I", "-B", str(PROGRAM), "look", *options]
        try:
            ended = subprocess.run(
                command, capture_output=True, stdin=subprocess.DEVNULL, timeout=MAX_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as problem:
            return {"verdict": "inconclusive", "reason": f"the look failed: {problem}"}
        said = ended.stdout.decode("utf-8", "replace").strip()
        return plain_text.json_object(said) or {"verdict": "inconclusive", "reason": said or "the look said nothing"}


def serve(request: ServeRequest) -> None:
    """Answer until the process is ended. Raise UserError."""
    free(request.unix)
    looks = CheckRunner(request)
    response = message(
        "HealthCheckResponse", {"success": "BOOL", "exit_code": "INT32", "output": "STRING", "error": "STRING"}
    )
    handler: Any = grpc.unary_unary_rpc_method_handler(
        lambda _request, _context: response(**vars(looks.answer())),
        response_serializer=lambda answered: answered.SerializeToString(),
    )
    server = grpc.server(ThreadPoolExecutor(max_workers=1), maximum_concurrent_rpcs=64)
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(f"{PACKAGE}.{SERVICE}", {METHOD: handler})])
    try:
        server.add_insecure_port(f"unix://{request.unix}")
        request.unix.chmod(FOR_ALL)
    except (RuntimeError, OSError) as problem:
        raise UserError(f"{request.unix}: cannot listen there: {plain_text.plain(problem, 200)}") from None
    server.start()
    server.wait_for_termination()


def free(path: Path) -> None:
    """Make sure that gRPC can listen there. Raise UserError: what another program listens at is never taken from it."""
    try:
        if path.is_symlink() or (path.exists() and not path.is_socket()):
            raise UserError(f"{path} exists and is not a socket: give another path, or remove it")
        with socket.socket(socket.AF_UNIX) as there:
            if there.connect_ex(str(path)) == 0:
                raise UserError(f"another program listens at {path}: stop it, or give another path")
        path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as there:  # gRPC prints a line of its own where this fails
            there.bind(str(path))
        path.unlink()
    except OSError as problem:
        raise UserError(f"{path}: cannot listen there: {problem.strerror}") from None


def message(name: str, fields: Mapping[str, str]) -> Any:
    """Return the class of a protobuf message whose fields have these names and kinds, numbered from 1."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{PACKAGE}.proto", package=PACKAGE, syntax="proto3")
    made = file.message_type.add(name=name)
    for number, (field, kind) in enumerate(fields.items(), 1):
        made.field.add(name=field, number=number, type=f"TYPE_{kind}", label="LABEL_OPTIONAL")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))
