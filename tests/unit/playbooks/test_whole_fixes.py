"""Fixes as a whole: the probe reads a host, its check fails, the changes are made, the check passes, and a rollback restores all."""

import importlib

import pytest

from nodetune import checks
from nodetune.audit import evaluate
from nodetune.facts import document
from nodetune.probe import mount_files, read
from nodetune.remediation import host_changes

RDMA = {"rdma.ports": {"value": {"mlx5_0/1": {"state": "ACTIVE"}}}, "containers.present": {"value": True}}
NO_TOOL = {"containers.toolkit": {"value": {"runtime": None, "ctk": "/usr/bin/nvidia-ctk", "mode": "auto"}}}
GPU = {"pci.gpus": {"value": ["0000:1b:00.0"]}, "kubernetes.kubelet": {"absent": "no kubelet on this host"}, **NO_TOOL}
PODMAN = {"/etc/containers/containers.conf": '[containers]\ndefault_ulimits = ["nofile=1024:2048", "memlock=64:64"]\n'}
CRIO = {"/etc/crio/crio.conf": '[crio.runtime]\ndefault_ulimits = [\n  "memlock=64:64",\n]\n'}
FEW = {
    "/etc/crio/crio.conf": "[crio.runtime]\npids_limit = 1024\n",
    "/etc/containers/containers.conf": "[containers]\npids_limit = 2048\n",
}
NFS = {"/etc/fstab": "# ours\nserver:/data\t/data nfs  rw,noac,actimeo=0,hard 0 0\n"}
AUTOMOUNT = {
    "/etc/auto.master": "/nfs /etc/auto.nfs\n",
    "/etc/auto.nfs": "data -rw,lookupcache=none server:/data\n",
}

WHOLE = [
    ("podman-memlock-limited", ["podman"], RDMA, PODMAN, {"/etc/containers/containers.conf.d/zz-nodetune.conf": '\n[containers]\ndefault_ulimits = ["nofile=1024:2048", "memlock=-1:-1"]\n'}),
    ("crio-memlock-limited", ["crio"], RDMA, CRIO, {"/etc/crio/crio.conf.d/zz-nodetune.conf": '\n[crio.runtime]\ndefault_ulimits = ["memlock=-1:-1"]\n'}),
    ("processes-of-containers-few", ["podman"], GPU, FEW, {"/etc/containers/containers.conf.d/zz-nodetune.conf": "\n[containers]\npids_limit = 65536\n"}),
    ("processes-of-containers-few", ["crio"], GPU, FEW, {"/etc/crio/crio.conf.d/zz-nodetune.conf": "\n[crio.runtime]\npids_limit = 65536\n"}),
    ("nfs-caches-nothing", [], {}, NFS, {"/etc/fstab": "# ours\nserver:/data\t/data nfs  rw,hard 0 0\n"}),
    ("nfs-caches-nothing", [], {}, AUTOMOUNT, {"/etc/auto.nfs": "data -rw server:/data\n"}),
]  # fmt: skip
"""Check, engines on the host, facts of the rest of the host, its files, and the end of files after the fix."""


@pytest.fixture
def root(tmp_path, monkeypatch):
    folder = tmp_path / "root"
    monkeypatch.setattr(read, "ROOT", str(folder))
    return folder


def collected(engines, monkeypatch):
    """The facts that come from the files of the host."""
    monkeypatch.setattr(read, "find_tool", lambda name: f"/usr/bin/{name}" if name in engines else None)
    containers = importlib.import_module("nodetune.probe.containers")
    found = {f"containers.{name}": fact for name, fact in containers.collect([], lambda text: None)}
    own = importlib.import_module("nodetune.probe.own")
    found |= {f"own.{name}": fact for name, fact in own.collect(["files"], lambda text: None)}
    return found | mounts()


def mounts():
    """What a new mount would show: the options of its line."""
    places = mount_files.configured({"/data", "/nfs/data"})
    points = {
        place: {"type": "nfs4", "source": "server:/data", "options": ["rw"], "super_options": given["options"]}
        for place, given in places.items()
    }
    nfs = {place: {"protocol": "tcp", "connections": 1} for place in places}
    named = {"configured": places, "points": points, "nfs": nfs}
    return {f"mounts.{name}": {"value": value} for name, value in named.items()}


def texts(root):
    return {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("case", WHOLE, ids=[f"{case[0]} {number}" for number, case in enumerate(WHOLE)])
def test_a_fix_changes_what_the_probe_reads_and_is_undone(root, do, monkeypatch, case):
    check_id, engines, host, files, wanted = case
    for path, text in files.items():
        (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        (root / path[1:]).write_text(text)
    check, before = checks.load(check_id), texts(root)

    def judged():
        usual = {"host.kernel": "6.8.0", "host.os": {"id": "debian", "like": []}}
        known = {name: {"value": value} for name, value in usual.items()}
        facts = {**known, **collected(engines, monkeypatch), **host}
        parsed = document.from_data({"host": "gpu01", "facts": facts})
        return evaluate.judge(check, parsed), parsed

    found, facts = judged()
    assert found.status == "fail"
    made, unbuilt = host_changes.build([found], facts)
    assert unbuilt == []
    changes = [
        {**change, "path": str(root) + change["path"]}
        for group in made
        for change in group.changes
        if change["change"] != "run"
    ]
    assert do(changes).problems == []
    for path, end in wanted.items():
        assert (root / path[1:]).read_text().endswith(end)
    assert judged()[0].status == "pass"
    assert do(changes, run="run-2").changed is False
    assert do.back().problems == []
    assert texts(root) == before
    assert judged()[0].status == "fail"
