"""A playbook a subject, by plain ansible-playbook: without nodetune's variables, settings or command line.

Each play sees folders of the test for what it may change (tests/support/private_host.py).
"""

import json

import pytest
import yaml

from nodetune import checks
from nodetune.remediation.builders._own import render
from tests.support import nvml_substitute, private_host
from tests.support.private_host import DEFAULTS, PLAYBOOKS

ROLE = PLAYBOOKS / "roles" / "tuning"
SUBJECTS = ("thp", "limits", "sysctl", "irq", "nccl", "gpu", "network", "storage", "slurm", "containers")


@pytest.fixture
def host(tmp_path):
    with private_host.made(tmp_path) as made:
        yield made


def of_thp(host):
    assert [host.text(f"thp/{name}").strip() for name in ("enabled", "defrag")] == ["madvise", "madvise"]
    assert "w /sys/kernel/mm/transparent_hugepage/enabled - - - - madvise\n" in host.text(
        "etc/tmpfiles.d/00-nodetune-thp.conf"
    )


def of_limits(host):
    lines = host.text("etc/security/limits.d/zz-nodetune-limits.conf").splitlines()
    assert {"* soft memlock unlimited", "* hard nofile 1048576", "root soft nproc unlimited"} <= set(lines)


def of_sysctl(host):
    assert host.text("proc-sys/vm/swappiness").strip() == "10"
    file = host.text("etc/sysctl.d/zz-nodetune-sysctl.conf")
    assert "vm.swappiness = 10\n" in file
    assert "numa_balancing" not in file, "this kernel does not have it"


def of_irq(host):
    assert host.text("irq/70/smp_affinity_list").strip() == "0"
    assert "ExecStart=" in host.text("etc/systemd/system/nodetune-irq.service")
    units = {name: host.text(f"run/units/{name}.service.enabled").strip() for name in ("irqbalance", "nodetune-irq")}
    assert units == {"irqbalance": "disabled", "nodetune-irq": "enabled"}


def of_nccl(host):
    assert host.text("etc/nccl.conf") == "# ours\nNCCL_DEBUG=WARN\nNCCL_IB_HCA=mlx5_0,mlx5_1\n"


def of_gpu(host):
    assert '"persistence_mode": {"0": "enabled", "1": "enabled"}' in host.text("etc/nodetune/gpu.conf")
    assert host.text("run/units/nodetune-gpu.service.enabled") == "enabled\n"


def of_network(host):
    assert host.text("proc-sys/net/ipv4/tcp_rmem").split() == ["4096", "131072", "268435456"]
    assert "net.core.somaxconn = 4096\n" in host.text("etc/sysctl.d/zz-nodetune-network.conf")


def of_storage(host):
    assert [host.text(f"block/{disk}/queue/scheduler").strip() for disk in ("nvme0n1", "sda")] == [
        "none",
        "mq-deadline",
    ]
    assert host.text("proc-sys/vm/vfs_cache_pressure").strip() == "50"
    assert host.text("etc/fstab") == "none /mnt tmpfs defaults,noatime 0 0\n"
    assert "noatime" in host.run("findmnt", "-n", "-o", "OPTIONS", "/mnt").stdout


def of_slurm(host):
    assert "\nLimitMEMLOCK=infinity\n" in host.text("etc/systemd/system/slurmd.service.d/zz-nodetune-slurm.conf")
    assert {"daemon-reload", "restart slurmd.service"} <= set(host.commands())


def of_containers(host):
    memlock = 'default_ulimits = ["memlock=-1:-1"]\n'
    assert f"\n[containers]\n{memlock}" in host.text("etc/containers/containers.conf.d/zz-nodetune-containers.conf")
    assert f"\n[crio.runtime]\n{memlock}" in host.text("etc/crio/crio.conf.d/zz-nodetune-containers.conf")
    assert "\nLimitMEMLOCK=infinity\n" in host.text(
        "etc/systemd/system/containerd.service.d/zz-nodetune-containers.conf"
    )
    assert '"live-restore": true' in host.text("etc/docker/daemon.json")
    assert '"default-shm-size": "16g"' in host.text("etc/docker/daemon.json")
    assert [line for line in host.commands() if "docker" in line] == [], "it stops containers"


GIVEN = {
    "nccl": {"nodetune_nccl": {"NCCL_IB_HCA": "mlx5_0,mlx5_1"}},
    "gpu": {"nodetune_gpu_indexes": [0, 1]},
    "storage": {
        "nodetune_storage_sysctl": {"vm.vfs_cache_pressure": 50},
        "nodetune_storage_mounts": {"/mnt": "noatime"},
    },
}


def asked(host, subjects):
    """Their variables, and the environment of the play."""
    given = [word for subject in subjects for word in ("-e", json.dumps(GIVEN.get(subject, {})))]
    if "gpu" not in subjects:
        return given, {}
    if missing := nvml_substitute.compiler_missing():
        pytest.skip(missing)
    (host.folder / "nvml").mkdir()
    folders = {"NODETUNE_NVML_RUN": str(host.folder / "nvml"), "NODETUNE_NVML_LIB": str(host.folder / "nvml")}
    return given, {"LD_LIBRARY_PATH": str(nvml_substitute.library()), **folders}


def went_there_and_back(host, playbook, subjects):
    """Check mode, a run, the same again, and its revert."""
    before, (given, environment) = host.seen(), asked(host, subjects)
    changed, shown = host.play(playbook, *given, "--check", "--diff", **environment)
    assert changed >= len(subjects)
    assert "\n+++ after: " in shown
    assert host.seen() == before
    assert not (host.folder / "lib/nodetune").exists()
    assert host.play(playbook, *given, **environment)[0] == changed
    for subject in subjects:
        globals()[f"of_{subject}"](host)
    assert host.play(playbook, *given, **environment)[0] == 0
    runs = {path.name.split("-")[1] for path in (host.folder / "lib/nodetune/runs").iterdir()}
    assert runs == set(subjects)
    assert host.play(playbook, *given, "-e", "nodetune_state=reverted", **environment)[0] >= len(subjects)
    assert host.seen() == before


@pytest.mark.slow
@pytest.mark.full
def test_all_playbooks_change_then_are_ok_then_revert(host):
    went_there_and_back(host, "all", SUBJECTS)


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_playbook_alone_changes_then_is_ok_then_reverts(host, subject):
    went_there_and_back(host, subject, [subject])


@pytest.mark.slow
def test_a_change_that_fails_fails_the_play_after_the_others(host):
    (host.folder / "thp/defrag").unlink()
    with pytest.raises(AssertionError, match="defrag is not there"):
        host.play("thp")
    assert host.text("thp/enabled") == "madvise\n"
    assert not (host.folder / "run/nodetune/lock").exists(), "the host is free again"
    with pytest.raises(AssertionError, match="value of nodetune_thp_enabled must be one of"):
        host.play("thp", "-e", "nodetune_thp_enabled=sometimes")


@pytest.mark.slow
def test_what_others_changed_since_stays_and_fails_the_revert(host):
    host.play("limits")
    file = host.folder / "etc/security/limits.d/zz-nodetune-limits.conf"
    file.write_text("# mine\n")
    with pytest.raises(AssertionError, match="changed since by someone else"):
        host.play("limits", "-e", "nodetune_state=reverted")
    assert file.read_text() == "# mine\n"


@pytest.mark.slow
@pytest.mark.full
def test_tags_select_subjects_and_reverts_leave_the_others(host):
    before = host.seen()
    changed, _ = host.play("all", "--tags", "thp,sysctl")
    assert changed == 2
    of_thp(host)
    of_sysctl(host)
    host.play("sysctl", "-e", '{"nodetune_sysctl": {"vm.swappiness": 1}}')
    assert host.text("proc-sys/vm/swappiness").strip() == "1"
    back = ("-e", "nodetune_state=reverted")
    assert host.play("sysctl", *back, "--check")[0] == 2
    assert host.text("proc-sys/vm/swappiness").strip() == "1"
    assert host.play("sysctl", *back)[0] == 2
    assert host.text("proc-sys/vm/swappiness").strip() == "1"
    of_thp(host)
    assert host.play("all", "--tags", "thp,sysctl", *back)[0] == 1
    assert host.seen() == before


def test_every_variable_is_documented_with_its_default():
    spec = yaml.safe_load((ROLE / "meta" / "argument_specs.yml").read_text())["argument_specs"]
    assert set(spec) == set(SUBJECTS)
    options = {name: option for subject in spec.values() for name, option in subject["options"].items()}
    assert set(options) == set(DEFAULTS)
    plain = {name: value for name, value in DEFAULTS.items() if not isinstance(value, dict | list)}
    assert {name: option["default"] for name, option in options.items() if "default" in option} == plain


def sets(kind, target):
    """What the check for a setting sets."""
    found = [each.set for each in checks.load_all() if (each.remedy.kind, each.remedy.target) == (kind, target)]
    assert all(each == found[0] for each in found)
    return found[0]


def test_the_defaults_are_what_apply_sets():
    folder = "/sys/kernel/mm/transparent_hugepage/"
    assert DEFAULTS["nodetune_thp_enabled"] == sets("sysfs", f"{folder}enabled")
    assert DEFAULTS["nodetune_thp_defrag"] == sets("sysfs", f"{folder}defrag")
    parameters = DEFAULTS["nodetune_sysctl"] | DEFAULTS["nodetune_network"]
    assert parameters == {name: sets("sysctl", name) for name in parameters}
    limits = DEFAULTS["nodetune_limits"]
    assert {item: {each["soft"], each["hard"]} for item, each in limits.items()} == {
        i: {sets("limit", i)} for i in limits
    }
    docker = DEFAULTS["nodetune_containers_docker"]
    assert docker == {key: sets("docker_daemon", key) for key in docker}
    assert DEFAULTS["nodetune_storage_queues"] == {"scheduler": {"nvme*n*": sets("block_queue", "scheduler")}}
    assert DEFAULTS["nodetune_gpu"] == {"persistence_mode": sets("gpu", "persistence_mode")}


def test_a_file_is_as_apply_writes_it_but_for_who_takes_it_back(monkeypatch):
    monkeypatch.syspath_prepend(str(ROLE / "filter_plugins"))
    import nodetune_changes

    settings = {"vm.swappiness": "10", "kernel.core_pattern": "|/bin/x %P <a> 'b'"}
    made = nodetune_changes.file(settings, "/x", "sysctl.conf.j2", "sysctl")["content"].splitlines()
    wanted = render("sysctl.conf.j2", settings).splitlines()
    assert made[1] == "# To take it back: ansible-playbook playbooks/sysctl.yml -e nodetune_state=reverted."
    assert [made[0], *made[2:]] == [wanted[0], *wanted[2:]]
