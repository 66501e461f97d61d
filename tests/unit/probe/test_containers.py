"""containers.*: engines' files, NVIDIA's toolkit and CDI specifications."""

import pytest

from nodetune.probe import read


@pytest.fixture
def engines(monkeypatch):
    """The programs that the host has."""

    def have(*programs):
        monkeypatch.setattr(read, "find_tool", lambda name: f"/usr/bin/{name}" if name in programs else None)

    have()
    return have


def test_a_host_without_engines_has_none(tree, collect, engines):
    tree({"/etc/": None})
    facts = collect("containers")
    assert facts["containers.present"] == {"value": False}
    assert "absent" in facts["containers.docker"]


def test_daemon_json_shows_what_containers_get_and_nothing_else(tree, collect, engines):
    engines("dockerd")
    tree(
        {
            "/etc/docker/daemon.json": '{"runtimes": {"nvidia": {}}, "default-shm-size": "16g", "cgroup-parent": "a.slice", '
            '"proxies": {"http-proxy": "http://u:p@x"}}'
        }
    )
    assert collect("containers")["containers.docker"] == {
        "value": {"cgroup-parent": "a.slice", "default-shm-size": "16g", "runtimes": ["nvidia"]}
    }


@pytest.mark.parametrize("content", ["{ not json", "[1]"])
def test_a_broken_daemon_json_is_unread(tree, collect, engines, content):
    engines("dockerd")
    tree({"/etc/docker/daemon.json": content})
    assert "unread" in collect("containers")["containers.docker"]


CONTAINERD = """\
imports = ["/etc/containerd/conf.d/*.toml"]
[plugins."io.containerd.grpc.v1.cri"]
  #enable_cdi = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
    SystemdCgroup = true
"""
NVIDIA = """\
[plugins."io.containerd.grpc.v1.cri".containerd]
  default_runtime_name = "nvidia"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
"""


def test_containerd_is_read_with_what_it_imports(tree, collect, engines):
    engines("containerd")
    tree(
        {
            "/etc/containerd/config.toml": CONTAINERD,
            "/etc/containerd/conf.d/99-nvidia.toml": NVIDIA,
            "/etc/containerd/conf.d/x.bak": "[",
        }
    )
    assert collect("containers")["containers.containerd"]["value"] == {
        "files": ["/etc/containerd/config.toml", "/etc/containerd/conf.d/99-nvidia.toml"],
        "nvidia_runtime": True,
        "default_runtime": "nvidia",
        "enable_cdi": None,
        "systemd_cgroup": True,
        "config_version": 1,
    }


def test_the_version_of_containerds_file_is_read(tree, collect, engines):
    engines("containerd")
    tree({"/etc/containerd/config.toml": "# version = 2\nversion = 3\n" + CONTAINERD})
    assert collect("containers")["containers.containerd"]["value"]["config_version"] == 3


def test_a_commented_runtime_is_none(tree, collect, engines):
    engines("containerd")
    tree({"/etc/containerd/config.toml": '#[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]\n'})
    assert collect("containers")["containers.containerd"]["value"]["nvidia_runtime"] is False


def test_k3s_brings_its_own_containerd(tree, collect, engines):
    tree({"/var/lib/rancher/k3s/agent/etc/containerd/config.toml": "[plugins.cri.containerd.runtimes.nvidia]\n"})
    facts = collect("containers")
    assert facts["containers.engines"] == {"value": ["containerd"]}
    assert facts["containers.containerd"]["value"]["nvidia_runtime"] is True


def test_crio_knows_its_runtime_and_cgroup_manager(tree, collect, engines):
    engines("crio")
    tree(
        {
            "/etc/crio/crio.conf.d/99-nvidia.conf": '[crio.runtime]\ncgroup_manager = "cgroupfs"\n[crio.runtime.runtimes.nvidia]\n'
        }
    )
    found = collect("containers")["containers.crio"]["value"]
    assert found == {
        "nvidia_runtime": True,
        "cgroup_manager": "cgroupfs",
        "pids_limit": None,
        "memlock": None,
        "ulimits": [],
    }


def test_the_last_file_decides_on_limits_of_crio_and_podman(tree, collect, engines):
    engines("crio", "podman")
    tree(
        {
            "/etc/crio/crio.conf": '[crio.runtime]\npids_limit = 1024\n# pids_limit = 7\ndefault_ulimits = [\n  "memlock=-1:-1",\n]\n',
            "/etc/crio/crio.conf.d/10-pids.conf": "pids_limit = -1\n",
            "/usr/share/containers/containers.conf": '[containers]\npids_limit = 2048\ndefault_ulimits = ["memlock=64:64"]\n',
            "/etc/containers/containers.conf.d/a.conf": '[containers]\ndefault_ulimits = ["nofile=1:2"]\n',
            "/etc/containers/containers.conf.d/b.bak": "pids_limit = 1\n",
        }
    )
    facts = collect("containers")
    assert facts["containers.crio"]["value"]["pids_limit"] == -1
    assert facts["containers.crio"]["value"]["memlock"] == "-1:-1"
    assert facts["containers.podman"] == {"value": {"pids_limit": 2048, "memlock": None, "ulimits": ["nofile=1:2"]}}


def test_the_toolkits_mode_is_that_of_its_runtime_section(tree, collect, engines):
    tree(
        {
            "/usr/bin/nvidia-ctk": "",
            "/usr/bin/nvidia-container-runtime": "",
            "/etc/nvidia-container-runtime/config.toml": '[nvidia-container-cli]\nmode = "x"\n\n[nvidia-container-runtime]\nmode = "cdi"\n[other]\nmode = "y"\n',
        }
    )
    assert collect("containers")["containers.toolkit"]["value"]["mode"] == "cdi"


@pytest.mark.parametrize(
    "content",
    [
        "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ncontainerEdits:\n  mounts:\n  - hostPath: /usr/lib/libcuda.so.550.54.15\n",
        '{"cdiVersion":"0.5.0","kind":"nvidia.com/gpu","x":"/usr/lib/libnvidia-ml.so.550.54.15"}',
    ],
)
def test_a_cdi_specification_tells_its_driver(tree, collect, engines, content):
    tree({"/etc/cdi/nvidia.yaml": content, "/run/cdi/other.json": '{"kind":"intel.com/gpu"}'})
    assert collect("containers")["containers.cdi"] == {
        "value": [{"file": "/etc/cdi/nvidia.yaml", "kind": "nvidia.com/gpu", "driver": "550.54.15", "devices": []}]
    }


@pytest.mark.parametrize(
    "content",
    [
        "kind: nvidia.com/gpu\ndevices:\n- name: '0'\n  deviceNodes:\n  - path: /dev/nvidia0\n    hostPath: /run/nvidia/driver/dev/nvidia9\n  - path: /dev/nvidiactl\n  - path: /dev/nvidia-caps/nvidia-cap1\n",
        '{"kind": "nvidia.com/gpu", "deviceNodes": [{"path": "/dev/nvidia0"}, {"path":"/dev/nvidia-uvm"}, {"path":"/dev/nvidia0"}]}',
    ],
)
def test_a_cdi_specification_names_files_of_gpus(tree, collect, engines, content):
    tree({"/run/cdi/nvidia.yaml": content})
    assert collect("containers")["containers.cdi"]["value"][0]["devices"] == ["/dev/nvidia0"]


def test_links_for_nvidias_devices_are_seen(tree, collect, engines):
    tree({"/dev/char/195:0": "-> ../nvidia0"})
    assert collect("containers")["containers.dev_char_links"] == {"value": True}


@pytest.mark.parametrize(("mask", "has"), [("000001ffffffffff", True), ("00000000a80425fb", False)])
def test_the_right_to_place_memory_is_a_bit_of_the_bounding_set(tree, collect, engines, mask, has):
    tree({"/proc/self/status": f"Name:\tpython3\nCapBnd:\t{mask}\n"})
    assert collect("containers")["containers.sys_nice"] == {"value": has}


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ("runc version 1.3.3-0ubuntu1~24.04.2\nspec: 1.2.1\ngo: go1.23.1\n", {"value": "1.3.3"}),
        ("runc version 1.2.5\ncommit: v1.2.5-0-g59923ef\nspec: 1.2.0\n", {"value": "1.2.5"}),
        ("youki version 0.5\n", {"unread": "runc --version says youki version 0.5\n"}),
    ],
)
def test_runc_itself_says_its_version(tree, collect, engines, monkeypatch, said, fact):
    tree({"/etc/": None})
    engines("runc")
    monkeypatch.setattr(read, "run", lambda command: said if command == ["/usr/bin/runc", "--version"] else "")
    assert collect("containers")["containers.runc"] == fact


def test_a_host_without_runc_has_no_version_of_it(tree, collect, engines):
    tree({"/etc/": None})
    assert "absent" in collect("containers")["containers.runc"]
