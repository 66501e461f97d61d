"""Fixes through a real API server, kubelet and container runtime, on a node that tests may change.

Needs what test_audit_by_pods.py needs, and in NODETUNE_TEST_NODE the name of a node that is a virtual machine or has a
root and a /proc/sys of its own: sysctl values and files of it are changed and restored. tests/support/own_node.sh makes one.
"""

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from nodetune.hosts.target import UnreachableError
from nodetune.remote.kubernetes import api, cordon, fix_pod
from tests.integration.test_audit_by_pods import CONFIG, IMAGE, Lab

NODE = os.environ.get("NODETUNE_TEST_NODE")

pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("kubernetes"),
    pytest.mark.skipif(
        not (CONFIG and IMAGE and NODE), reason="no Kubernetes node that may be changed: fixes through pods"
    ),
]

LIMITS = (1 << 20, 1 << 16, 100_000)
FILE = "/etc/sysctl.d/zz-nodetune.conf"
SITE = """
add:
- {{id: site-map-count, sysctl: vm.max_map_count, accept: {wanted}, set: {wanted}, severity: medium}}
- {{id: site-argument, kernel_arg: nodetune.test, accept: "1", set: "1", severity: medium}}
"""
GRUB = """
mkdir -p /boot/grub /etc/default/grub.d; touch /etc/default/grub
[ -s /boot/grub/grub.cfg ] || cat > /usr/local/sbin/update-grub <<'END'
#!/bin/sh
for file in /etc/default/grub /etc/default/grub.d/*.cfg; do [ -f "$file" ] && . "$file"; done
printf 'menuentry one {\\n linux /boot/vmlinuz-1 root=/dev/vda ro %s\\n}\\n' "$GRUB_CMDLINE_LINUX_DEFAULT" > /boot/grub/grub.cfg
END
[ -s /boot/grub/grub.cfg ] || { chmod +x /usr/local/sbin/update-grub; /usr/local/sbin/update-grub; }
"""


class Node(Lab):
    """The node, and a shell on its host."""

    def __init__(self, folder):
        super().__init__()
        self.node, self.folder = NODE, folder
        self.open()
        self.before = self.on_host("cat /proc/sys/vm/max_map_count")
        (folder / "site.yml").write_text(SITE.format(wanted=int(self.before) + 1))

    def open(self):
        wanted = fix_pod.HostPod(NODE, "nodetune-fix-of-a-test", IMAGE, self.namespace, None, 900.0)
        self.shell = fix_pod.shell(wanted, LIMITS)

    def on_host(self, command):
        code, out, errors = self.shell.run(command)
        assert code == 0, errors.decode()
        return out.decode().strip()

    def nodetune(self, *words):
        given = {**os.environ, "COLUMNS": "1000", "NODETUNE_RUNS": str(self.folder / "runs")}
        command = [sys.executable, "-m", "nodetune", *words]
        return subprocess.run(command, check=False, capture_output=True, text=True, env=given)

    def apply(self, *words):
        way = ["--transport", "kubernetes", "-i", self.node, "--namespace", self.namespace, "--image", IMAGE]
        return self.nodetune("apply", *way, "--site", str(self.folder / "site.yml"), "--format", "json", *words)

    def run_web(self, kept):
        """Run a pod with a controller, and a budget that keeps so many of it."""
        labels = {"app": "web"}
        container = {"name": "web", "image": IMAGE}
        spec = {"hostNetwork": True, "terminationGracePeriodSeconds": 0, "containers": [container]}
        web = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}}
        sets = f"/apis/apps/v1/namespaces/{self.namespace}/replicasets"
        self.api.request("POST", sets, {"metadata": {"name": "web"}, "spec": {"replicas": 1, **web}})
        budget = {"metadata": {"name": "web"}, "spec": {"minAvailable": kept, "selector": {"matchLabels": labels}}}
        budgets = f"/apis/policy/v1/namespaces/{self.namespace}/poddisruptionbudgets"
        self.api.request("POST", budgets, budget)
        while not any(each["metadata"]["name"].startswith("web") and running(each) for each in self.every_pod()):
            time.sleep(0.2)
        while self.api.request("GET", f"{budgets}/web").get("status", {}).get("currentHealthy") != 1:
            time.sleep(0.2)

    def every_pod(self):
        return self.api.items(f"{self.path}/pods")

    def close(self):
        self.shell.run(
            f"rm -f {FILE} /etc/default/grub.d/zz-nodetune.cfg; echo {self.before} > /proc/sys/vm/max_map_count"
        )
        super().close()


def running(pod):
    return pod["status"].get("phase") == "Running"


@pytest.fixture
def node(monkeypatch, tmp_path):
    monkeypatch.setenv("KUBECONFIG", CONFIG)
    api.connected.cache_clear()
    made = Node(tmp_path)
    yield made
    made.close()


def outcomes(done):
    return {each["check"]: (each["outcome"], each["reason"]) for each in json.loads(done.stdout)["steps"]}


def test_a_fix_reaches_the_host_and_a_rollback_restores_it(node):
    done = node.apply("-s", "site-map-count", "-y")
    assert done.returncode == 0, done.stdout + done.stderr
    assert outcomes(done)["site-map-count"][0] == "fixed"
    assert int(node.on_host("cat /proc/sys/vm/max_map_count")) == int(node.before) + 1
    assert "vm.max_map_count" in node.on_host(f"cat {FILE}")
    run = json.loads(done.stdout)["run"]
    assert run in node.on_host("ls /var/lib/nodetune/runs"), "the journal is on the host, as by SSH"
    back = node.nodetune("rollback", "last", "-y")
    assert back.returncode == 0, back.stdout + back.stderr
    assert node.on_host("cat /proc/sys/vm/max_map_count") == node.before
    assert node.on_host(f"test -e {FILE} || echo gone") == "gone"
    while node.pods() != ["nodetune-fix-of-a-test"]:
        time.sleep(0.1)


def test_what_needs_a_boot_waits_for_the_cordon_and_the_pods(node):
    node.on_host(GRUB)
    disruptive = ("-s", "site-argument", "-y", "--max-disruption", "reboot")
    done = node.apply(*disruptive)
    told = f"Kubernetes may start pods here: kubectl drain {NODE}, or --drain kubernetes"
    assert outcomes(done)["site-argument"] == ("skipped", told)
    node.run_web(kept=1)
    done = node.apply(*disruptive, "--drain", "kubernetes", "--drain-wait", "0.1")
    assert "its PodDisruptionBudget allows no eviction now" in outcomes(done)["site-argument"][1]
    assert not cordon.is_cordoned(node.api, NODE)
    patch = {"spec": {"minAvailable": 0}}
    budget = f"/apis/policy/v1/namespaces/{node.namespace}/poddisruptionbudgets/web"
    node.api.request("PATCH", budget, patch, kind=cordon.MERGE)
    done = node.apply(*disruptive, "--drain", "kubernetes", "--drain-wait", "5")
    assert outcomes(done)["site-argument"][0] == "pending reboot", done.stdout
    assert "nodetune.test=1" in node.on_host("cat /boot/grub/grub.cfg")
    assert not cordon.is_cordoned(node.api, NODE), "what it cordoned is in service again"
    back = node.nodetune("rollback", "last", "-y")
    assert back.returncode == 4 and told in back.stdout, back.stdout + back.stderr
    back = node.nodetune("rollback", "last", "-y", "--drain", "kubernetes")
    assert back.returncode == 0, back.stdout + back.stderr
    assert "nodetune.test=1" not in node.on_host("cat /boot/grub/grub.cfg")
    assert not cordon.is_cordoned(node.api, NODE), "what it cordoned is in service again"


def test_a_killed_apply_leaves_a_journal_that_the_next_one_reads(node):
    node.on_host(GRUB)
    given = {**os.environ, "NODETUNE_RUNS": str(node.folder / "runs")}
    way = ["--transport", "kubernetes", "-i", NODE, "--namespace", node.namespace, "--image", IMAGE]
    command = [sys.executable, "-m", "nodetune", "apply", *way, "--site", str(node.folder / "site.yml")]
    started = subprocess.Popen([*command, "-s", "site-map-count", "-y"], env=given, stdout=subprocess.DEVNULL)
    while node.on_host(f"test -e {FILE} || echo none"):
        assert started.poll() is None
    started.kill()
    started.wait()
    done = node.apply("-s", "site-map-count", "-y")
    assert done.returncode == 0, done.stdout + done.stderr
    runs = sorted((node.folder / "runs").iterdir())
    back = [node.nodetune("rollback", each.name, "-y") for each in reversed(runs)]
    assert [each.returncode for each in back] == [0] * len(back), [each.stderr for each in back]
    assert node.on_host("cat /proc/sys/vm/max_map_count") == node.before


def test_a_pod_that_must_end_lets_its_command_end_first(node):
    node.on_host("rm -f /run/nodetune-test-done")

    def run():
        with suppress(UnreachableError):  # its result is lost with the pod
            node.shell.run("sleep 3; touch /run/nodetune-test-done")

    threading.Thread(target=run, daemon=True).start()
    while "nodetune-test-done" not in node.on_host("ps -eo args"):
        time.sleep(0.1)
    node.api.request("DELETE", f"{node.path}/pods/nodetune-fix-of-a-test")
    while node.pods():
        time.sleep(0.1)
    node.open()
    assert node.on_host("rm /run/nodetune-test-done; echo it was there") == "it was there"


def test_a_command_outlives_the_session_that_started_it(node):
    """The first session is cut off after a second; the result is that of the whole command."""
    opened, cut = [], threading.Event()
    real = fix_pod.HostShell._opened

    def watched(shell, deadline):
        channels, connection = real(shell, deadline)
        opened.append(connection)
        if len(opened) == 1:
            threading.Timer(1.0, lambda: (connection.close(), cut.set())).start()
        return channels, connection

    shell = node.shell
    shell._opened = watched.__get__(shell)
    assert shell.run("for n in 1 2 3 4; do echo $n; sleep 1; done; exit 4") == (4, b"1\n2\n3\n4\n", b"")
    assert cut.is_set()
    assert len(opened) > 1
