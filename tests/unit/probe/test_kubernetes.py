"""kubernetes.*: the kubelet's settings by precedence, and its record of devices."""

import os

import pytest

CONFIG = """\
apiVersion: kubelet.config.k8s.io/v1beta1
authentication:
  topologyManagerPolicy: not-this-one
cpuManagerPolicy: static   # whole cores
failSwapOn: false
topologyManagerPolicy: "best-effort"
reservedSystemCPUs: ''
"""
RUNNING = {
    "/proc/1/comm": "systemd",
    "/proc/7/comm": "kubelet",
    "/proc/7/status": "Uid:\t0\t0\t0\t0\n",
    "/proc/7/cmdline": "/usr/bin/kubelet\0--config=/var/lib/kubelet/config.yaml\0",
}


def kubelet(collect):
    return collect("kubernetes")["kubernetes.kubelet"]


def test_a_host_without_a_kubelet_has_none(tree, collect):
    tree({"/proc/1/comm": "systemd"})
    facts = collect("kubernetes")
    assert facts["kubernetes.present"] == {"value": False}
    assert "absent" in facts["kubernetes.kubelet"]


def test_only_top_level_entries_are_settings(tree, collect):
    tree({**RUNNING, "/var/lib/kubelet/config.yaml": CONFIG})
    assert kubelet(collect)["value"] == {
        "file": "/var/lib/kubelet/config.yaml",
        "running": True,
        "settings": {"cpuManagerPolicy": "static", "failSwapOn": "false", "topologyManagerPolicy": "best-effort"},
    }


def test_a_flag_beats_the_drop_in_folder_and_that_the_file(tree, collect):
    tree(
        {
            **RUNNING,
            "/etc/k/config.yaml": CONFIG,
            "/etc/k/d/10.conf": "cpuManagerPolicy: none\ntopologyManagerPolicy: restricted\n",
            "/proc/7/cmdline": "/usr/bin/kubelet\0--config\0/etc/k/config.yaml\0--config-dir=/etc/k/d\0--topology-manager-policy=single-numa-node\0",
        }
    )
    settings = kubelet(collect)["value"]["settings"]
    assert (settings["cpuManagerPolicy"], settings["topologyManagerPolicy"]) == ("none", "single-numa-node")


def test_a_json_configuration_is_read_too(tree, collect):
    tree({**RUNNING, "/var/lib/kubelet/config.yaml": '{"cpuManagerPolicy": "static", "failSwapOn": false}'})
    assert kubelet(collect)["value"]["settings"] == {"cpuManagerPolicy": "static", "failSwapOn": "false"}


@pytest.mark.parametrize(
    "content",
    [
        'cpuManagerPolicyOptions:\n  # no half cores\n  strict-cpu-reservation: "true"\n  full-pcpus-only: true\nmaxPods: 110\n',
        "cpuManagerPolicyOptions: {strict-cpu-reservation: 'true', full-pcpus-only: \"true\"}\n",
        '{"cpuManagerPolicyOptions": {"strict-cpu-reservation": "true", "full-pcpus-only": "true"}}',
    ],
)
def test_options_of_a_policy_are_read_as_their_flag(tree, collect, content):
    tree({**RUNNING, "/var/lib/kubelet/config.yaml": content})
    options = "full-pcpus-only=true,strict-cpu-reservation=true"
    assert kubelet(collect)["value"]["settings"] == {"cpuManagerPolicyOptions": options}


STATES = {
    '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}': {"policy": "none", "cpus": ""},
    '{"policyName":"static","defaultCpuSet":"0","entries":{"abcccd64-9869-4c50-a603-9d5ebe1530bb":{"c":"1"}},"checksum":2115106725}': {
        "policy": "static",
        "cpus": "0-1",
    },
    '{"policyName":"static","defaultCpuSet":"0-3","entries":{"a1":"4-5","b2":"7"},"checksum":1}': {
        "policy": "static",
        "cpus": "0-5,7",
    },
}
"""What a kubelet of Kubernetes 1.36.2 wrote (the last: one before 1.18), and the fact."""


@pytest.mark.parametrize(("content", "fact"), STATES.items())
def test_the_cpu_managers_state_tells_its_policy_and_cpus(tree, collect, content, fact):
    tree({**RUNNING, "/var/lib/kubelet/cpu_manager_state": content})
    managers = collect("kubernetes")["kubernetes.managers"]["each"]
    assert managers["cpu"] == {"value": fact}
    assert "absent" in managers["memory"]


def test_the_memory_managers_state_tells_its_policy(tree, collect):
    state = '{"policyName":"None","machineState":{},"checksum":4236770233}'
    tree({**RUNNING, "/var/lib/kubelet/memory_manager_state": state})
    assert collect("kubernetes")["kubernetes.managers"]["each"]["memory"] == {"value": {"policy": "None"}}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"policyName": "static", "defaultCpuSet": 5}',
        '{"policyName": "static", "defaultCpuSet": "0-9999999999"}',
    ],
)
def test_a_state_of_another_shape_is_unread(tree, collect, content):
    tree({**RUNNING, "/var/lib/kubelet/cpu_manager_state": content})
    assert "unread" in collect("kubernetes")["kubernetes.managers"]["each"]["cpu"]


def test_a_broken_json_configuration_is_unread(tree, collect):
    tree({**RUNNING, "/var/lib/kubelet/config.yaml": "{"})
    assert "unread" in kubelet(collect)


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_a_configuration_that_may_not_be_read_is_unread(tree, collect):
    root = tree({**RUNNING, "/var/lib/kubelet/config.yaml": CONFIG})
    (root / "var/lib/kubelet/config.yaml").chmod(0)
    assert "needs root" in kubelet(collect)["unread"]


def test_k3s_is_a_kubelet_whose_settings_are_elsewhere(tree, collect):
    tree(
        {
            "/proc/1/comm": "systemd",
            "/proc/7/comm": "k3s",
            "/proc/7/status": "Uid:\t0\t0\t0\t0\n",
            "/proc/7/cmdline": "/usr/local/bin/k3s\0agent\0",
        }
    )
    facts = collect("kubernetes")
    assert facts["kubernetes.present"] == {"value": True}
    assert "k3s" in facts["kubernetes.kubelet"]["absent"]


def test_registered_devices_are_counted_and_replicas_once(tree, collect):
    tree(
        {
            **RUNNING,
            "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint": (
                '{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{"nvidia.com/gpu":["GPU-a::0","GPU-a::1","GPU-b::0"],"rdma/hca":null}}}'
            ),
        }
    )
    assert collect("kubernetes")["kubernetes.devices"] == {"value": {"nvidia.com/gpu": 2, "rdma/hca": 0}}


@pytest.mark.parametrize("content", ["", "[]", '{"Data": []}', '{"Data": {"RegisteredDevices": 5}}'])
def test_a_record_of_another_shape_is_unread(tree, collect, content):
    tree({**RUNNING, "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint": content})
    assert "unread" in collect("kubernetes")["kubernetes.devices"]


def test_plugins_are_named_without_the_kubelets_own_socket(tree, collect):
    tree(
        {
            **RUNNING,
            "/var/lib/kubelet/device-plugins/kubelet.sock": "",
            "/var/lib/kubelet/device-plugins/nvidia-gpu.sock": "",
            "/var/lib/kubelet/plugins_registry/gpu.nvidia.com-reg.sock": "",
        }
    )
    assert collect("kubernetes")["kubernetes.plugins"] == {"value": ["gpu.nvidia.com-reg.sock", "nvidia-gpu.sock"]}
