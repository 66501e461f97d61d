"""Fixes on a virtual machine that is a node of a real Kubernetes cluster, through pods: ten kinds, with a reboot, and back.

NODETUNE_TEST_KUBELAB names the program of the lab (its README says what it needs), NODETUNE_TEST_IMAGE an image of `make image`
in this machine's buildah. The control plane runs here; the machine has Debian's containerd, cgroup v2 and a kubelet, which
joins by 10.0.2.2. It is called by its address on this machine, where the API server reaches it.
"""

import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from nodetune.remote.kubernetes import api, cordon
from tests.integration.test_audit_by_pods import Lab
from tests.machines import place, witness
from tests.machines.faults import NODETUNE
from tests.machines.place import until

KUBELAB, IMAGE = (os.environ.get(f"NODETUNE_TEST_{name}") for name in ("KUBELAB", "IMAGE"))
PATIENCE = 1800
"""Seconds, for what takes one of them on a real node: an emulated one, next to others, may need many."""

pytestmark = [
    pytest.mark.timeout(4 * 3600),
    pytest.mark.skipif(not (KUBELAB and IMAGE), reason="no Kubernetes lab: fixes on a machine that is a node"),
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),  # the lab's program leaves closing to Python
]

KUBELET_PORT = 10250
PAUSE = "kubelab.local/pause:1"
CONTAINERD = f"""version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = true
"""
NO_NETWORK = {"cniVersion": "0.4.0", "name": "none", "plugins": [{"type": "loopback"}]}
"""All pods here use the network of their host."""

KUBELET = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "authentication": {"anonymous": {"enabled": False}, "x509": {"clientCAFile": "/etc/kubernetes/ca.crt"}},
    "authorization": {"mode": "Webhook"},
    "cgroupDriver": "systemd",
    "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
    "evictionHard": {"memory.available": "20Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
    "failSwapOn": False,
    "makeIPTablesUtilChains": False,
    "runtimeRequestTimeout": "15m",
}
UNIT = """[Unit]
After=containerd.service network.target
[Service]
ExecStart=/usr/local/bin/kube kubelet --config=/var/lib/kubelet/config.yaml --kubeconfig=/etc/kubernetes/kubelet.conf --hostname-override={name}
Restart=always
RestartSec=5
[Install]
WantedBy=multi-user.target
"""
WRONG = """
sed -i 's|^\\(UUID=.* /data ext4\\) [^ ]*|\\1 strictatime,nofail|' /etc/fstab
echo 'ACTION!="remove", KERNEL=="nvme*", ATTR{queue/scheduler}="mq-deadline"' > /etc/udev/rules.d/60-site-disks.rules
mkdir -p /etc/systemd/system/containerd.service.d
printf '[Service]\nLimitNOFILE=4096\n' > /etc/systemd/system/containerd.service.d/site.conf
systemctl daemon-reload
systemctl -q enable --now iperf3
mount -o remount,strictatime /data
udevadm control --reload
udevadm trigger --settle --action=change --subsystem-match=block
sync
"""
"""Of what is not wrong by itself, each setting now and at each boot."""

SITE = """
add:
  - {id: site-argument, kernel_arg: audit, accept: 0, set: 0}
  - {id: site-iperf3-runs, service: iperf3, accept: disabled, set: disabled}
  - {id: site-ksm-pages, sysfs: /sys/kernel/mm/ksm/pages_to_scan, accept: 200, set: 200}
  - {id: site-nccl-min-ctas, nccl_conf: NCCL_MIN_CTAS, accept: 16, set: 16}
"""
KINDS = {
    "governor-not-performance": ("cpufreq", "sort -u /sys/devices/system/cpu/cpufreq/policy*/scaling_governor"),
    "nvme-scheduler-set": ("block_queue", "cat /sys/block/nvme*/queue/scheduler"),
    "open-files-low": ("limit", "grep files /proc/$(pidof containerd)/limits"),
    "scratch-updates-atime": ("mount_option", "findmnt -no OPTIONS /data"),
    "site-argument": ("kernel_arg", "grep -o 'audit=.*' /proc/cmdline"),
    "site-iperf3-runs": ("service", "systemctl is-enabled iperf3; systemctl is-active iperf3"),
    "site-ksm-pages": ("sysfs", "cat /sys/kernel/mm/ksm/pages_to_scan"),
    "site-nccl-min-ctas": ("nccl_conf", "cat /etc/nccl.conf"),
    "swap-on": ("swap_off", "swapon --noheadings --show=NAME; grep swap /etc/fstab"),
    "swappiness-high": ("sysctl", "cat /proc/sys/vm/swappiness"),
}
"""Check → its kind of fix, and how the machine itself tells the setting."""


class Cluster:
    """A control plane on this machine, in a folder."""

    def __init__(self, folder):
        self.folder, self.packed = folder, Path(KUBELAB).parent / "bin/kube.zst"
        loader = importlib.machinery.SourceFileLoader("kubelab", KUBELAB)
        self.program = importlib.util.module_from_spec(importlib.util.spec_from_loader("kubelab", loader))
        loader.exec_module(self.program)
        authority = ("--kubelet-certificate-authority=", "--kubelet-preferred-address-types=Hostname")
        self._kubelab("up", "--net", "10.249", "--timeout", "600", *(f"--apiserver-arg={each}" for each in authority))

    def _kubelab(self, command, *words):
        given = {**os.environ, "KUBELAB_KUBE": str(self.packed)}
        subprocess.run([sys.executable, KUBELAB, command, str(self.folder), *words], check=True, env=given)

    def close(self):
        self._kubelab("down")

    def credentials(self, name):
        """The kubeconfig of a kubelet on a machine."""
        about = {**self.program.load(str(self.folder)), "node": name}
        self.program.certificates(str(self.folder), about)
        made = self.folder / "kubelet.conf"
        self.program.kubeconfig(str(self.folder), about, "kubelet", str(made))
        found = json.loads(made.read_text())
        there = {"server": f"https://10.0.2.2:{about['port']}", "tls-server-name": "localhost"}
        found["clusters"][0]["cluster"].update(there)
        return json.dumps(found)

    def images(self):
        """Archives of the image of every pod's first container, and of nodetune's."""
        root = self.folder / "pause"
        root.mkdir()
        (root / "pause.c").write_text(self.program.PAUSE_C)
        subprocess.run(["gcc", "-Os", "-static", "-s", "-o", "pause", "pause.c"], check=True, cwd=root)
        layer, pause, ours = (self.folder / name for name in ("layer.tar", "pause.tar", "nodetune.tar"))
        self.program.layer_from_dir(str(root), str(layer))
        self.program.image_tar(str(layer), str(pause), PAUSE, ["/pause"])
        subprocess.run(["buildah", "push", "-q", IMAGE, f"docker-archive:{ours}:{IMAGE}"], check=True)
        return pause, ours


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    made = Cluster(tmp_path_factory.mktemp("cluster") / "lab")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("KUBECONFIG", str(made.folder / "kubeconfig"))
        api.connected.cache_clear()
        yield made
    api.connected.cache_clear()
    made.close()


@pytest.fixture(scope="module")
def machine(fleet, cluster):
    """A machine with wrong settings that has joined the cluster."""
    made = fleet(1)[0]
    made.ssh(WRONG, timeout=PATIENCE)
    made.write("/etc/containerd/config.toml", CONTAINERD)
    made.write("/etc/cni/net.d/10-none.conflist", json.dumps(NO_NETWORK))
    made.write("/etc/kubernetes/ca.crt", (cluster.folder / "pki/ca.crt").read_text())
    made.write("/etc/kubernetes/kubelet.conf", cluster.credentials(made.address), mode="600")
    made.write("/var/lib/kubelet/config.yaml", json.dumps(KUBELET))
    made.write("/etc/systemd/system/kubelet.service", UNIT.format(name=made.address))
    made.put(cluster.packed, "/root/kube.zst")
    made.ssh("zstd -dq --rm /root/kube.zst -o /usr/local/bin/kube; chmod 755 /usr/local/bin/kube", timeout=PATIENCE)
    made.ssh("systemctl -q enable containerd kubelet; systemctl restart containerd", timeout=PATIENCE)
    for archive in cluster.images():
        made.put(archive, "/root/image.tar")
        made.ssh("ctr -n k8s.io images import /root/image.tar; rm /root/image.tar", timeout=PATIENCE)
    forward = f"hostfwd_add management tcp:{made.address}:{KUBELET_PORT}-:{KUBELET_PORT}"
    assert made.qmp("human-monitor-command", **{"command-line": forward}) == ""
    made.ssh("systemctl start kubelet", timeout=PATIENCE)
    until("the node is ready", lambda: ready(made), PATIENCE, every=2)
    yield made
    fleet.stop(made)


def ready(machine):
    """Whether the kubelet of this boot says so."""
    booted = time.time() - float(machine.read("/proc/uptime").split()[0])
    for each in api.connected(None).items("/api/v1/nodes"):
        for told in each["status"].get("conditions", ()):
            if (told["type"], told["status"]) == ("Ready", "True"):
                return told["lastHeartbeatTime"] > time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(booted))
    return False


def settled(machine):
    """Wait until the machine has booted and its kubelet works."""
    machine.ssh("systemctl is-system-running --wait", check=False, timeout=PATIENCE)
    until("the node is ready", lambda: ready(machine), PATIENCE, every=2)


@pytest.fixture(scope="module")
def nodetune(machine, tmp_path_factory):
    """nodetune as a user runs it, with an answer in JSON."""
    lab, folder = Lab(), tmp_path_factory.mktemp("controller")
    (folder / "site.yml").write_text(SITE)

    def run(command, *words, code=0):
        given = {**os.environ, "NODETUNE_RUNS": str(folder / "runs"), "COLUMNS": "300"}
        words = [NODETUNE, command, *words, "--yes", "--timeout", "300", "--format", "json"]
        done = subprocess.run(words, capture_output=True, text=True, env=given, timeout=3 * PATIENCE)
        assert done.returncode == code, f"{done.returncode}\n{done.stdout[-6000:]}\n{done.stderr[-3000:]}"
        return json.loads(done.stdout)

    where = ["--transport", "kubernetes", "-i", machine.address, "--namespace", lab.namespace, "--image", IMAGE]
    chosen = [word for check in KINDS for word in ("-s", check)]
    yield SimpleNamespace(
        apply=lambda *words: run("apply", *where, *chosen, "--site", str(folder / "site.yml"), *words),
        roll_back=lambda run_id, *words: run("rollback", run_id, *words),
        lab=lab,
    )
    lab.close()


def snapshot(machine):
    said = {check: machine.ssh(command, check=False).stdout for check, (_, command) in KINDS.items()}
    return SimpleNamespace(files=witness.files(machine), said=said, boot=machine.boot_id())


@pytest.fixture(scope="module")
def before(machine):
    assert machine.ssh("stat -fc %T /sys/fs/cgroup").stdout == "cgroup2fs\n"
    return snapshot(machine)


@pytest.fixture(scope="module")
def applied(nodetune, machine, before):
    """An apply with the reboot that the kernel's argument needs."""
    told = nodetune.apply("--max-disruption", "reboot", "--reboot", "--drain", "kubernetes")
    settled(machine)
    return SimpleNamespace(told=told, **vars(snapshot(machine)))


@pytest.fixture(scope="module")
def rolled_back(nodetune, machine, applied):
    nodetune.roll_back(applied.told["run"], "--drain", "kubernetes")
    machine.reboot()
    settled(machine)
    return snapshot(machine)


def test_each_kind_of_fix_reaches_the_machine_and_survives_its_reboot(machine, before, applied):
    assert {step["check"]: step["outcome"] for step in applied.told["steps"]} == dict.fromkeys(KINDS, "fixed")
    assert applied.boot != before.boot
    same = {check for check in KINDS if applied.said[check] == before.said[check]}
    assert same == set(), applied.said
    assert applied.said["site-argument"].startswith("audit=0")


def test_the_node_is_in_service_again_and_no_pod_is_left(nodetune, machine, applied):
    assert not cordon.is_cordoned(api.connected(None), machine.address)
    until("the pods of the run are gone", lambda: not nodetune.lab.pods(), place.PATIENCE)


def test_a_rollback_restores_every_byte_and_value(before, rolled_back):
    assert witness.changed(before.files, rolled_back.files) == {}
    assert witness.changed(before.said, rolled_back.said) == {}
