"""The service that asks the guard before a rendezvous: real gRPC at a real socket, a node with a substitute for NVML."""

import json
import os
import socket
import stat
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from tests.unit.guard.install import LATEST

service = pytest.importorskip("nodetune.guard.serve.service", reason="grpcio is not installed")

ASK = r"""
import json, sys
import grpc
with grpc.insecure_channel("unix://" + sys.argv[1]) as channel:
    call = channel.unary_unary("/nvhcd.HealthCheckService/RunHealthCheck")
    data = call(b"\x0a\x0a--no-slurm", timeout=60, wait_for_ready=True)
found = {}
while data:  # the wire format of protobuf: success 1, exit_code 2, output 3, error 4
    number, kind, data = data[0] >> 3, data[0] & 7, data[1:]
    value = shift = 0
    while True:
        byte, data = data[0], data[1:]
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    if kind == 2:
        value, data = data[:value].decode(), data[value:]
    found[number] = value
print(json.dumps([found.get(1, 0), found.get(2, 0), json.loads(found[3]), found.get(4, "")]))
"""
SERVE = """
import sys
from nodetune.guard.serve import service
service.FRESH_SECONDS, service.KEPT = float(sys.argv.pop(1)), sys.argv.pop(1)
from nodetune.cli.main import main
main()
"""


@contextmanager
def serving(node, fresh=0.0):
    """The service on a node. Yields what asks it."""
    path = node.folder / "nvhcd.sock"
    options = ["--unix", path, "--policy", node.policy, "--state", node.run_folder]
    command = [
        *node.enter,
        sys.executable,
        "-c",
        SERVE,
        str(fresh),
        str(node.kept),
        "guard",
        "serve",
        *map(str, options),
    ]
    with subprocess.Popen(command, env={**os.environ, **node.environment()}, start_new_session=True) as child:
        deadline = time.monotonic() + LATEST
        while not path.exists():
            assert child.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        try:
            yield lambda: asked(path)
        finally:
            os.killpg(child.pid, 9)


def asked(path):
    command = [sys.executable, "-c", ASK, str(path)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_a_failing_check_fails_the_node_until_it_passes(node):
    with serving(node) as ask:
        assert ask() == [1, 0, {"fail_count": 0, "failed_checks": [], "verdict": "pass", "reason": ""}, ""]
        node.control("lost@3=1")
        success, code, said, error = ask()
        assert (success, code, said["fail_count"], said["failed_checks"]) == (0, 1, 1, ["gpu-lost"])
        assert error == said["reason"] and "GPU3" in error
        node.control()
        assert ask()[0] == 1
        assert stat.S_IMODE((node.folder / "nvhcd.sock").stat().st_mode) == 0o666


def test_many_that_ask_at_once_share_a_look(node):
    with serving(node, fresh=1000) as ask:
        assert ask()[0] == 1
        node.control("lost@3=1")
        assert ask()[0] == 1


@pytest.mark.parametrize("how", ["no policy", "switched off", "observe"])
def test_a_guard_that_does_not_judge_fails_no_node(node, how):
    node.control("lost@3=1")
    if how == "no policy":
        node.policy.write_text("{")
    elif how == "observe":
        node.write_policy(mode="observe")
    else:
        (node.folder / "off.policy").touch()
    with serving(node) as ask:
        success, code, said, error = ask()
    assert (success, code, said["fail_count"], error) == (1, 0, 0, "")
    assert said["verdict"] == ("fail" if how == "observe" else "inconclusive")
    assert said["reason"]
    assert said.get("observed_checks") == (["gpu-lost"] if how == "observe" else None)


@pytest.mark.parametrize(
    "result", [{}, {"verdict": "fail"}, {"verdict": 7, "checks": ["a"], "mode": "enforce"}, {"verdict": "inconclusive"}]
)
def test_what_is_no_verdict_fails_no_node(result):
    assert service.answer(result).success
    assert json.loads(service.answer(result).output)["fail_count"] == 0


def refused(path):
    command = [sys.executable, "-m", "nodetune", "guard", "serve", "--unix", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    return done.stderr.strip()


def test_a_path_that_is_taken_is_left_alone(tmp_path):
    (tmp_path / "file").write_text("kept")
    assert "exists and is not a socket" in refused(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "kept"
    with socket.socket(socket.AF_UNIX) as there:
        there.bind(str(tmp_path / "socket"))
        there.listen()
        assert "another program listens at" in refused(tmp_path / "socket")
    nowhere = tmp_path / "none" / "socket"
    assert refused(nowhere).splitlines() == [f"nodetune: {nowhere}: cannot listen there: No such file or directory"]
    assert "give a whole path" in refused("socket")


def test_the_socket_of_one_that_was_killed_is_replaced(node):
    for _ in range(2):
        with serving(node) as ask:
            assert ask()[0] == 1
