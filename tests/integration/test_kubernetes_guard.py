"""The guard in a real cluster, where this machine is the node: its condition, its rights, and that nothing stays behind.

Needs kubectl and helm on PATH, and what test_audit_by_pods.py needs. A check of the site's own plays the fault.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from nodetune.guard.node.condition import HARDWARE, TYPE, TYPES
from nodetune.guard.node.node_status import COMPONENT, KIND
from nodetune.remote.kubernetes.cordon import BY
from tests.unit.guard.test_manifests import made

CONFIG, IMAGE = (os.environ.get(f"NODETUNE_TEST_{name}") for name in ("KUBECONFIG", "IMAGE"))
TOOLS = all(map(shutil.which, ("kubectl", "helm")))

pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("kubernetes"),
    pytest.mark.skipif(not (CONFIG and IMAGE and TOOLS), reason="no Kubernetes: the guard in a real cluster"),
]

LATEST = 300.0
LABEL = "nodetune-test"
SITE = """
add:
- {{id: site-swappiness, fact: sysctl.vm.swappiness, accept: {{at_most: {most}}}, severity: critical, gate: true, title: as in a test, manual: none}}
"""


def kubectl(*words, given="", check=True):
    done = subprocess.run(["kubectl", *words], input=given, capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, done.stderr
    return done.stdout if done.returncode == 0 else done.stderr


def manifests(*words):
    command = [
        sys.executable,
        "-m",
        "nodetune",
        "guard",
        "manifests",
        "--image",
        IMAGE,
        "--node-label",
        f"{LABEL}=1",
        *words,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Cluster:
    def __init__(self):
        nodes = json.loads(kubectl("get", "nodes", "-o", "json"))["items"]
        self.node = next(each["metadata"]["name"] for each in nodes if "kubelab/fake" not in each["metadata"]["labels"])
        kubectl("label", "node", self.node, f"{LABEL}=1", "--overwrite")

    def condition(self):
        node = json.loads(kubectl("get", "node", self.node, "-o", "json"))
        return next((each for each in node["status"]["conditions"] if each["type"] == TYPE), {})

    def until(self, status):
        deadline = time.monotonic() + LATEST
        while self.condition().get("status") != status:
            assert time.monotonic() < deadline, self.condition()
            time.sleep(1)
        return self.condition()

    def clear(self):
        kubectl("delete", "namespace", "nodetune", "--ignore-not-found")
        ours = "clusterrole,clusterrolebinding,validatingadmissionpolicy,validatingadmissionpolicybinding"
        kubectl("delete", ours, "-l", "app.kubernetes.io/name=nodetune")
        removed = {"status": {"conditions": [{"type": each, "$patch": "delete"} for each in TYPES]}}
        kubectl("patch", "node", self.node, "--subresource=status", "--type=strategic", "-p", json.dumps(removed))
        kubectl("label", "node", self.node, f"{LABEL}-")


@pytest.fixture
def cluster(monkeypatch):
    monkeypatch.setenv("KUBECONFIG", CONFIG)
    found = Cluster()
    found.clear()
    found = Cluster()
    yield found
    found.clear()


def test_the_api_server_takes_every_field(cluster):
    kubectl("create", "namespace", "nodetune")
    for kind in ("daemonset", "npd", "clear", "fixes", "verify"):
        kubectl(
            "apply",
            "--server-side",
            "--dry-run=server",
            "--validate=strict",
            "--force-conflicts",
            "-f",
            "-",
            given=manifests("--kind", kind),
        )


def test_the_condition_follows_an_enforced_check_and_is_kept(cluster, tmp_path):
    site = tmp_path / "site.yml"
    site.write_text(SITE.format(most=-1))
    observed = manifests("--site", str(site))
    kubectl("apply", "--server-side", "-f", "-", given=observed)
    assert cluster.until("False")["reason"] == "GatingCheckWouldFail"
    kubectl("apply", "--server-side", "-f", "-", given=manifests("--site", str(site), "--enforce", "site-swappiness"))
    assert cluster.until("True")["message"].startswith("site-swappiness: ")
    kubectl("delete", "-n", "nodetune", "daemonset", "nodetune-node", "--wait=true")
    assert cluster.condition()["status"] == "True"
    site.write_text(SITE.format(most=1000))
    kubectl("apply", "--server-side", "-f", "-", given=manifests("--site", str(site), "--enforce", "site-swappiness"))
    assert cluster.until("False")["reason"] == "GatingChecksPass"


OTHERS = {
    "Ready": {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
    "without Ready": {"status": {"conditions": [{"type": "Ready", "$patch": "delete"}]}},
    "a condition without a status": {"status": {"conditions": [{"type": HARDWARE, "status": ""}]}},
    "another condition": {"status": {"conditions": [{"type": "Other", "status": "True"}]}},
    "capacity": {"status": {"capacity": {"nvidia.com/gpu": "8"}}},
    "addresses": {"status": {"addresses": [{"type": "ExternalIP", "address": "192.0.2.1"}]}},
    "a label": {"metadata": {"labels": {"a": "b"}}},
    "an annotation": {"metadata": {"annotations": {"a": "b"}}},
}
OURS = {"status": {"conditions": [{"type": TYPE, "status": "False", "reason": "Test", "message": "of a test"}]}}


def test_its_token_changes_its_condition_and_nothing_else(cluster):
    kubectl("apply", "--server-side", "-f", "-", given=manifests())
    kubectl("rollout", "status", "-n", "nodetune", "daemonset/nodetune-node", "--timeout=120s")
    (pod,) = kubectl("get", "pods", "-n", "nodetune", "-o", "name").split()
    token = kubectl(
        "create",
        "token",
        "-n",
        "nodetune",
        "nodetune-guard",
        "--bound-object-kind=Pod",
        f"--bound-object-name={pod[4:]}",
    )
    assert _patched(token, cluster.node, OURS) == 200
    assert {name: _patched(token, cluster.node, patch) for name, patch in OTHERS.items()} == dict.fromkeys(OTHERS, 403)
    kubectl(
        "create", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "of-a-test"}})
    )
    try:
        assert _patched(token, "of-a-test", OURS) == 403
        assert _made(token, event(cluster.node)) == 201
        wrong = [event("of-a-test"), event(cluster.node, kind="Pod"), event(cluster.node, component="kubelet")]
        assert [_made(token, each) for each in wrong] == [403] * 3
        assert _made(token, event(cluster.node), "nodetune") in (403, 422)
        assert _patched(kubectl("create", "token", "-n", "nodetune", "nodetune-guard"), cluster.node, OURS) == 403
        assert _patched(token, cluster.node, {"spec": {"unschedulable": True}}, "") == 403
        assert _patched(token.strip() + "x", cluster.node, OURS) == 401
    finally:
        kubectl("delete", "node", "of-a-test")


FIXED = {
    "a taint": {"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}},
    "where it is": {"spec": {"providerID": "a://b"}},
    "a label": {"metadata": {"labels": {"a": "b"}}},
    "another annotation": {"metadata": {"annotations": {"a": "b", BY: "a run"}}},
    "without another annotation": {"metadata": {"annotations": {"of-a-test": None}}},
    "an owner": {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "a", "uid": "b"}]}},
}


def test_the_token_for_fixes_cordons_nodes_and_changes_nothing_else_of_them(cluster):
    kubectl("create", "namespace", "nodetune")
    kubectl("apply", "--server-side", "-f", "-", given=manifests("--kind", "fixes"))
    token = kubectl("create", "token", "-n", "nodetune", "nodetune-fix")
    kubectl("annotate", "node", cluster.node, "of-a-test=1")
    cordoned = {"metadata": {"annotations": {BY: "a run"}}, "spec": {"unschedulable": True}}
    tested = [{"op": "test", "path": "/metadata/annotations/nodetune.io~1cordoned-by", "value": "a run"}]
    removed = [{"op": "remove", "path": path} for path in (tested[0]["path"], "/spec/unschedulable")]
    try:
        deadline = time.monotonic() + LATEST
        while _patched(token, cluster.node, FIXED["a label"], "") != 403:  # until the API server has read the policy
            assert time.monotonic() < deadline
            kubectl("label", "node", cluster.node, "a-")
        found = {name: _patched(token, cluster.node, patch, "") for name, patch in FIXED.items()}
        assert found == dict.fromkeys(FIXED, 403)
        assert _patched(token, cluster.node, OURS) == 403
        assert _patched(token, cluster.node, cordoned, "") == 200
        assert _patched(token, cluster.node, [*tested, *removed], "", "application/json-patch+json") == 200
    finally:
        kubectl("annotate", "node", cluster.node, "of-a-test-", f"{BY}-")


def event(node, kind="Node", component=COMPONENT):
    about = {"apiVersion": "v1", "kind": kind, "name": node, **({} if kind == "Node" else {"namespace": "default"})}
    return {"metadata": {"generateName": "test-"}, "involvedObject": about, "source": {"component": component}}


def _made(token, made, namespace="default"):
    """The status of the answer to an Event."""
    return _asked("POST", token, f"/api/v1/namespaces/{namespace}/events", made, "application/json")


def _patched(token, node, patch, part="/status", kind=KIND):
    """The status of the answer."""
    return _asked("PATCH", token, f"/api/v1/nodes/{node}{part}", patch, kind)


def _asked(method, token, path, body, kind):
    server = yaml.safe_load(Path(CONFIG).read_text())["clusters"][0]["cluster"]["server"]
    headers = {"Content-Type": kind, "Authorization": f"Bearer {token.strip()}"}
    given = [word for name, value in headers.items() for word in ("-H", f"{name}: {value}")]
    command = ["curl", "-sk", "-o", os.devnull, "-w", "%{http_code}", "-X", method, "-d", json.dumps(body), *given]
    return int(subprocess.run([*command, f"{server}{path}"], capture_output=True, text=True).stdout)


def test_a_second_release_says_which_guard_is_there(cluster):
    def installed(name, namespace):
        command = ["helm", "install", name, "charts/nodetune", "-n", namespace, "--create-namespace"]
        return subprocess.run(command, capture_output=True, text=True).stderr

    try:
        assert "INSTALLATION FAILED" not in installed("first", "nodetune")
        for name, namespace in (("second", "nodetune-test"), ("second", "nodetune"), ("first", "nodetune-test")):
            assert "there can be one: helm uninstall first -n nodetune" in installed(name, namespace)
    finally:
        subprocess.run(["helm", "uninstall", "first", "-n", "nodetune", "--no-hooks"], check=True, capture_output=True)
    kubectl("apply", "--server-side", "-f", "-", given=manifests())
    assert "this cluster has a guard of `nodetune guard manifests`" in installed("first", "nodetune")


def test_an_uninstalled_chart_leaves_nothing_behind(cluster):
    namespace = made()[0]
    kubectl("apply", "-f", "-", given=json.dumps(namespace))
    values = [
        "--set",
        f"image={IMAGE}",
        "--set-string",
        f"nodeSelector.{LABEL}=1",
        "--set",
        "nodeSelector.nvidia\\.com/gpu\\.present=null",
    ]
    for verb in ("install", "upgrade"):
        subprocess.run(
            ["helm", verb, "nodetune", "charts/nodetune", "-n", "nodetune", "--wait", *values],
            check=True,
            capture_output=True,
        )
    cluster.until("False")
    subprocess.run(["helm", "uninstall", "nodetune", "-n", "nodetune", "--wait"], check=True, capture_output=True)
    assert cluster.condition() == {}
    assert HARDWARE not in kubectl("get", "node", cluster.node, "-o", "json")
    ours = "clusterrole,clusterrolebinding,validatingadmissionpolicy,validatingadmissionpolicybinding"
    assert kubectl("get", ours, "-l", "app.kubernetes.io/name=nodetune", "-o", "name") == ""
    assert (
        kubectl("get", "sa,cm,secret,ds,job", "-n", "nodetune", "-l", "app.kubernetes.io/name=nodetune", "-o", "name")
        == ""
    )
