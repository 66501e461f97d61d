"""The guard in a real cluster while things fail: its pod is evicted, its image is gone, its node is deleted. No wrong condition.

Needs what test_kubernetes_guard.py needs.
"""

import json
import subprocess
import sys
import time

from nodetune.remote.kubernetes import api
from tests.integration import test_kubernetes_guard as real
from tests.integration.test_kubernetes_guard import SITE, kubectl, manifests
from tests.support.simulated_nodes import SimulatedNodes
from tests.unit.guard.reporter_process import FAILS

pytestmark = real.pytestmark
cluster = real.cluster
LATEST = 300.0


def pods():
    """The pods of the guard that live, by name → whether all their containers run."""
    found = json.loads(kubectl("get", "pods", "-n", "nodetune", "-l", "app.kubernetes.io/component=node", "-o", "json"))
    alive = [each for each in found["items"] if "deletionTimestamp" not in each["metadata"]]
    states = {each["metadata"]["name"]: each["status"].get("containerStatuses") or [] for each in alive}
    return {name: [*each] != [] and all("running" in one["state"] for one in each) for name, each in states.items()}


def wait(reached, *, meanwhile=lambda: None):
    deadline = time.monotonic() + LATEST
    while not reached():
        assert time.monotonic() < deadline
        meanwhile()
        time.sleep(1)


def test_a_bad_node_stays_bad_while_its_pod_is_evicted_or_has_no_image(cluster, tmp_path):
    site = tmp_path / "site.yml"
    site.write_text(SITE.format(most=-1))
    asked = ("--site", str(site), "--enforce", "site-swappiness")
    kubectl("apply", "--server-side", "-f", "-", given=manifests(*asked))
    cluster.until("True")

    def still():
        assert cluster.condition()["status"] == "True"

    (first,) = pods()
    evicted = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": first, "namespace": "nodetune"}}
    path = f"/api/v1/namespaces/nodetune/pods/{first}/eviction"
    kubectl("create", "--raw", path, "-f", "-", given=json.dumps(evicted))
    wait(lambda: [name for name, runs in pods().items() if runs and name != first], meanwhile=still)
    before = cluster.condition()["lastHeartbeatTime"]
    wait(lambda: cluster.condition()["lastHeartbeatTime"] > before, meanwhile=still)

    kubectl(
        "set",
        "image",
        "-n",
        "nodetune",
        "daemonset/nodetune-node",
        "check=nodetune.invalid/none:1",
        "reporter=nodetune.invalid/none:1",
    )
    wait(lambda: not any(pods().values()), meanwhile=still)
    still()
    site.write_text(SITE.format(most=1000))
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given=manifests(*asked))
    assert cluster.until("False")["reason"] == "GatingChecksPass"


def test_a_node_that_was_deleted_gets_its_condition_once_it_is_back(cluster, tmp_path):
    """A reporter whose node is gone is refused, and tries again; it writes for no other node."""
    there = api.Api(api.connected(None).access)
    with SimulatedNodes(there, 2, tmp_path).made() as nodes:
        name, other = nodes.names
        (tmp_path / "result").mkdir()
        code = (
            "import sys; from nodetune.guard.node import main, report; "
            f"report.TOKENS = {str(tmp_path / name)!r}; report.JITTER_SECONDS = report.RETRY_SECONDS = report.MAX_RETRY_SECONDS = 1.0; "
            "report.HEARTBEAT_SECONDS = 5.0; "
            f"sys.exit(main.main(['report', '--result', {str(tmp_path / 'result')!r}, '--enforce', 'all']))"
        )
        host, _, port = there.name.rpartition(":")
        environment = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port, "NODE_NAME": name}
        with subprocess.Popen(
            [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True
        ) as child:

            def look():
                written = tmp_path / "result" / "new"
                written.write_text(json.dumps(FAILS))
                written.rename(tmp_path / "result" / "health.json")

            def said(word):
                """Look until the reporter says so."""
                while word not in child.stdout.readline():
                    look()

            try:
                look()
                wait(lambda: nodes.conditions()[name] == "True", meanwhile=look)
                kubectl("delete", "node", name)
                wait(lambda: name not in nodes.conditions(), meanwhile=look)
                said("True GatingCheckFails")
                said("not written: 40")
                nodes.add(name)
                wait(lambda: nodes.conditions()[name] is not None, meanwhile=look)
                assert nodes.conditions() == {name: "True", other: None}
            finally:
                child.kill()
