"""The check container of Kubernetes: looks at the whole node, from time to time."""

import json
import os
import signal
import subprocess
import textwrap
import time

import pytest

from tests.unit.guard.install import LATEST, PYTHON

LOOKS = """
    import sys
    sys.path.insert(0, {program!r})
    from nodetune.guard.node import main
    files = ["--policy", {policy!r}, "--run", {run!r}, "--kept", "", "--result", {result!r}, "--host", {host!r}]
    main.main(["looks", *files, "--every", "0.05"])
"""
HIDDEN = """
    mount --make-rprivate / && mkdir -p {host} && mount --rbind / {host} || exit 9
    for folder in {hidden}; do mount -t tmpfs none {host}$folder || exit 9; done
    exec "$@"
"""


class Looking:
    """A process that looks at a node; `shell` prepares its mounts."""

    def __init__(self, node, host="/", shell=""):
        self.result = node.folder / "result"
        self.result.mkdir(exist_ok=True)
        paths = {"program": node.program, "policy": node.policy, "run": node.run_folder, "result": self.result}
        code = textwrap.dedent(LOOKS).format(**{name: str(path) for name, path in paths.items()}, host=str(host))
        before = ["unshare", "-m", "sh", "-c", textwrap.dedent(shell), "sh"] if shell else []
        environment = {**node.environment(), "NODE_NAME": "gpu-7"}
        del environment["SLURMD_NODENAME"]
        command = [*node.enter, *before, PYTHON, "-I", "-S", "-B", "-c", code]
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.killpg(self.process.pid, signal.SIGKILL)  # nsenter waits for a child of its own
        self.process.communicate()

    def next(self):
        """The result of a look that begins after now."""
        return [self._new() for _ in range(2)][1]

    def _new(self):
        file, deadline = self.result / "health.json", time.monotonic() + LATEST
        before = self._stamp(file)
        while self._stamp(file) == before:
            assert self.process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return json.loads(file.read_text())

    def _stamp(self, file):
        return (file.stat().st_ino, file.stat().st_mtime_ns) if file.exists() else None


def test_each_look_judges_the_node_as_it_is_then(node):
    with Looking(node) as looking:
        found = looking.next()
        assert (found["verdict"], found["node"], found["unknown"]) == ("pass", "gpu-7", [])
        node.control("lost@3=1")
        found = looking.next()
        assert (found["verdict"], found["checks"]) == ("fail", ["gpu-lost"])
        node.control()
        assert looking.next()["verdict"] == "pass"
        assert json.loads(node.read("health.json"))["node"] == "gpu-7"
        assert looking.process.poll() is None


def test_a_policy_that_cannot_be_read_is_inconclusive_until_it_can(node):
    with Looking(node) as looking:
        text = node.policy.read_text()
        node.policy.write_text("{")
        found = looking.next()
        assert found["verdict"] == "inconclusive"
        assert "not JSON" in found["reason"]
        node.write_policy(lambda data: data["checks"][0].update(id="gpu-of-tomorrow"))
        assert "gpu-of-tomorrow" in looking.next()["reason"]
        node.policy.write_text(text)
        assert looking.next()["verdict"] == "pass"


def test_the_switch_of_the_policy_makes_it_inconclusive(node):
    with Looking(node) as looking:
        (node.folder / "off.policy").touch()
        found = looking.next()
        assert (found["verdict"], found["reason"]) == ("inconclusive", f"switched off by {node.folder}/off.policy")


def test_a_driver_that_hangs_is_found(node):
    node.write_policy(seconds={"total": 5, "step": 0.3, "stuck": 20})
    node.control("hang@3=nvmlDeviceGetTemperature:forever")
    with Looking(node) as looking:
        assert looking.next()["checks"] == ["nvml-not-answering"]
        node.control()
        assert looking.next()["verdict"] == "pass"


@pytest.mark.skipif(os.geteuid() != 0, reason="not root: no mounts of its own")
def test_the_hosts_root_becomes_its_own_and_read_only(node):
    """What is imported later still comes from the container: the host has no Python here."""
    host = node.folder / "host"
    hidden = f"{node.program} {os.path.dirname(os.__file__)}"
    with Looking(node, host, HIDDEN.format(host=host, hidden=hidden)) as looking:
        assert looking.next()["verdict"] == "pass"
        node.control("lost@3=1")
        assert looking.next()["checks"] == ["gpu-lost"]
        assert json.loads(node.read("health.json"))["checks"] == ["gpu-lost"]
