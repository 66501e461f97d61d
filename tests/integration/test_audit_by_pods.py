"""Audits through a real API server, kubelet and container runtime, where this machine is the node.

NODETUNE_TEST_KUBECONFIG names the kubeconfig of its administrator, NODETUNE_TEST_IMAGE an image of `make image` that the node has.
"""

import json
import os
import secrets
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from nodetune import checks
from nodetune.audit import evaluate
from nodetune.hosts.connection_options import Cluster, ConnectionOptions, SessionOptions
from nodetune.remote import payload, pool
from nodetune.remote.kubernetes import api, nodes, pod

CONFIG, IMAGE = (os.environ.get(f"NODETUNE_TEST_{name}") for name in ("KUBECONFIG", "IMAGE"))

pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("kubernetes"),
    pytest.mark.skipif(not (CONFIG and IMAGE), reason="no Kubernetes: audits through pods on a real cluster"),
]

PRIVILEGED = {f"pod-security.kubernetes.io/{mode}": "privileged" for mode in ("enforce", "warn", "audit")}


MOVING = {
    "host.uptime_s",
    *("memory.available_kb", "memory.free_blocks", "memory.free_kb", "numa.nodes"),
    *("net.statistics", "tcp.segments", "tcp.softnet"),
}
OF_KUBELET = {"sysctl.vm.overcommit_memory", "kubernetes.managers"}
"""A kubelet with mounts of its own, on a machine that is more than its node, hides from others what it sets and keeps."""


class Lab:
    """A namespace of one test, and what it does in it."""

    def __init__(self):
        self.api = api.connected(None)
        self.namespace = f"nodetune-test-{secrets.token_hex(4)}"
        self.path = f"/api/v1/namespaces/{self.namespace}"
        (self.node,) = (
            each["metadata"]["name"]
            for each in self.api.items("/api/v1/nodes")
            if any(told["type"] == "Ready" and told["status"] == "True" for told in each["status"]["conditions"])
        )
        self.api.request("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace, "labels": PRIVILEGED}})
        while not self.ready():
            time.sleep(0.1)

    def ready(self):
        """Whether pods can be made: a new namespace first gets its service account."""
        try:
            return self.api.request("GET", f"{self.path}/serviceaccounts/default")
        except api.ApiError:
            return False

    def run_pod(self, **security):
        """Run a pod as the DaemonSet does, on this machine."""
        made = pod.manifest(IMAGE, self.node, 3000)
        made["metadata"].update(name="nodetune-node", labels=pod.LABELS)
        made["spec"]["containers"][0]["securityContext"] = security or {"privileged": True}
        self.api.request("POST", f"{self.path}/pods", made)
        while self.phase() != "Running":
            time.sleep(0.1)

    def phase(self):
        return self.api.request("GET", f"{self.path}/pods/nodetune-node")["status"].get("phase")

    def pods(self):
        return [each["metadata"]["name"] for each in self.api.items(f"{self.path}/pods")]

    def found(self, asked, seconds=60.0, whole=60.0, **more):
        """The facts of this machine, or the error."""
        options = SessionOptions(seconds=seconds, cluster=Cluster(namespace=self.namespace, **more))
        connection = ConnectionOptions(self.node, transport="kubernetes", options=options)
        targets = nodes.selected(connection, lambda _text: None)
        script = lambda _target: payload.script_in_pod(asked, 30.0, whole=whole)  # noqa: E731
        ((_, found, _),) = pool.collect(targets, script, options, transport="kubernetes", asked=asked)
        return found

    def cli(self, *words, **environment):
        """What `nodetune audit` says."""
        command = [sys.executable, "-m", "nodetune", "audit", "--transport", "kubernetes", "-i", self.node]
        command += ["--namespace", self.namespace, *words]
        given = {**os.environ, "COLUMNS": "1000", **environment}
        return subprocess.run(command, check=False, capture_output=True, text=True, env=given)

    def close(self):
        self.api.request("DELETE", f"/api/v1/namespaces/{self.namespace}")


@pytest.fixture
def lab(monkeypatch):
    monkeypatch.setenv("KUBECONFIG", CONFIG)
    api.connected.cache_clear()
    made = Lab()
    yield made
    made.close()


@pytest.fixture(scope="module")
def asked():
    return payload.families(evaluate.required_facts(checks.load_all()))


def plain(facts):
    """Facts as data that can be compared."""
    return {name: repr(fact) for name, fact in facts.items()}


def test_the_facts_are_those_of_a_run_on_the_host(lab, asked):
    """What differs in three comparisons: some facts never hold still."""
    lab.run_pod()
    names = {f"{family}.{name}" for family in asked for name in asked[family]}
    differing = []
    for _ in range(3):
        code = "import json, sys; from nodetune.remote import local; from nodetune.facts import document\n"
        code += "found = document.from_data(local.facts(json.load(sys.stdin), 30.0), 'h').facts\n"
        code += "print(json.dumps({name: repr(fact) for name, fact in found.items()}))"
        words = [sys.executable, "-c", code]
        done = subprocess.run(words, input=json.dumps(asked), capture_output=True, text=True, check=True)
        here, there = json.loads(done.stdout), plain(lab.found(asked).facts)
        assert len(there) > 300
        differing.append({name for name in names if here.get(name) != there.get(name)})
    assert set.intersection(*differing) - MOVING - OF_KUBELET == set()


def test_an_audit_leaves_no_pod_of_its_own_behind(lab):
    done = lab.cli("--image", IMAGE, "--format", "json")
    assert done.returncode in (0, 1), done.stderr
    (host,) = json.loads(done.stdout)["hosts"]
    assert (host["name"], host["state"]) == (lab.node, "ok")
    assert lab.pods() == []


def test_a_node_without_a_pod_is_not_reached(lab):
    done = lab.cli()
    assert done.returncode == 3
    assert f"the DaemonSet has no pod on it in namespace {lab.namespace}" in done.stdout


def test_an_image_that_does_not_exist_is_named_and_its_pod_removed(lab):
    found = lab.found({"host": ["arch"]}, image="nodetune.invalid/none:1")
    assert (found.state, found.message[:39]) == ("no pod", "the pod did not start: ErrImagePull: fa")
    assert [name for name in lab.pods() if name.startswith("nodetune-audit")] == []


def test_a_pod_without_the_privilege_says_so(lab):
    lab.run_pod(privileged=False)
    found = lab.found({"host": ["arch"]})
    assert (found.state, found.message) == (
        "no privilege",
        "the pod is not privileged (unshare: operation not permitted)",
    )


def test_a_pod_that_may_only_mount_names_what_it_cannot_read(lab):
    lab.run_pod(capabilities={"add": ["SYS_ADMIN", "SYS_CHROOT"]}, appArmorProfile={"type": "Unconfined"})
    found = lab.found({"kernel_log": ["errors"], "pci": ["config"], "xid": ["events"]})
    assert "permission denied: the pod is not privileged" in repr(found.facts)
    assert "--become" not in repr(found.facts)


def test_a_user_who_may_not_exec_is_told_so(lab, tmp_path):
    lab.run_pod()
    account = lab.api.request("POST", f"{lab.path}/serviceaccounts/default/token", {"spec": {"expirationSeconds": 600}})
    made = json.loads(Path(CONFIG).read_text())
    made["users"] = [{"name": each["name"], "user": {"token": account["status"]["token"]}} for each in made["users"]]
    (tmp_path / "kubeconfig").write_text(json.dumps(made))
    done = lab.cli(KUBECONFIG=str(tmp_path / "kubeconfig"))
    assert done.returncode == 2
    assert "not allowed (403): nodes is forbidden: User" in done.stderr
    assert 'cannot list resource "nodes"' in done.stderr
    made["users"] = [{"name": each["name"], "user": {"token": "none"}} for each in made["users"]]
    (tmp_path / "kubeconfig").write_text(json.dumps(made))
    done = lab.cli(KUBECONFIG=str(tmp_path / "kubeconfig"))
    assert "does not accept the credential of context" in done.stderr


def probes():
    """The probes that run in pods on this machine."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if b"f = os.fdopen(0, 'rb', 0)" in path.read_bytes() and "kubepods" in (path.parent / "cgroup").read_text():
                found.append(path.parent.name)
    return found


@pytest.mark.parametrize("whole", [1.0, 300.0], ids=["its own deadline", "its client has left"])
def test_a_probe_that_hangs_is_ended(lab, monkeypatch, whole):
    hanging = payload.IN_POD.replace("lambda: main.emit", "lambda: __import__('time').sleep(300) or main.emit")
    assert hanging != payload.IN_POD
    monkeypatch.setattr(payload, "IN_POD", hanging)
    lab.run_pod()
    found = lab.found({"host": ["arch"]}, seconds=5.0, whole=whole)
    assert found.state == ("bad answer" if whole < 5 else "deadline")
    while probes():
        time.sleep(0.1)


def test_what_a_pod_may_not_write_is_the_host(lab, monkeypatch):
    tried = "lambda: print(__import__('os').access('/proc/sys/vm/swappiness', 2), __import__('os').access('/dev/shm', 2), flush=True)"
    monkeypatch.setattr(
        payload, "IN_POD", payload.IN_POD.replace("lambda: main.emit(ASKED, NONCE, SECONDS, {most!r})", tried)
    )
    lab.run_pod()
    found = lab.found({"host": ["arch"]})
    assert "begins: False False" in found.message
