"""The guard in a real cluster on a node that loses a GPU, and on one where NVML answers nothing. A substitute for NVML plays the GPUs.

Needs what test_kubernetes_guard.py needs.
"""

import json
import shutil
import time

import pytest
import yaml

from tests.integration import test_kubernetes_guard as real
from tests.integration.test_kubernetes_guard import kubectl, manifests
from tests.support import nvml_substitute

pytestmark = real.pytestmark
cluster = real.cluster
LATEST, LOOKS = 300.0, 120
"""Seconds: until something is written, and in which a wrong verdict would have been."""
DEVICE = {"vendor": "0x10de", "device": "0x2335", "class": "0x030200"}
GONE = ("driver_not_loaded=1",)


class Substitute:
    """GPUs on a bus and in NVML for the container `check`, on a machine that is no virtual one."""

    def __init__(self, folder):
        self.folder, self.bus, self.state = folder, folder / "bus", folder / "state"
        for part in (self.bus, self.state, folder / "drivers" / "nvidia"):
            part.mkdir(parents=True)
        folder.joinpath("cpuinfo").write_text("flags\t\t: fpu\n")
        self.library = nvml_substitute.copied(folder / "nvml")

    def gpus(self, count, *control):
        """Let there be so many GPUs, on the bus and in NVML."""
        for each in self.bus.iterdir():
            shutil.rmtree(each)
        addresses = [f"0000:{6 + number:02x}:00.0" for number in range(count)]
        for bdf in addresses:
            (self.bus / bdf).mkdir()
            for name, content in DEVICE.items():
                (self.bus / bdf / name).write_text(f"{content}\n")
            (self.bus / bdf / "driver").symlink_to(self.folder / "drivers" / "nvidia")
        lines = [f"count={count}", *(f"bdf@{number}={bdf}" for number, bdf in enumerate(addresses)), *control]
        (self.state / "control").write_text("".join(f"{line}\n" for line in lines))

    def installed(self, *words):
        """The guard, with this in its container `check`."""
        objects = list(yaml.safe_load_all(manifests(*words)))
        (pod,) = [each["spec"]["template"]["spec"] for each in objects if each["kind"] == "DaemonSet"]
        check = pod["containers"][0]
        given = {"LD_LIBRARY_PATH": self.library, "NODETUNE_NVML_RUN": self.state}
        check["env"] += [{"name": name, "value": str(path)} for name, path in given.items()]
        # the linker looks for its folders once, before the host's root is there
        there = {"bus": "/host/sys/bus/pci/devices", "cpuinfo": "/host/proc/cpuinfo", "nvml": str(self.library)}
        for name, path in there.items():
            pod["volumes"].append({"name": name, "hostPath": {"path": str(self.folder / name)}})
            check["volumeMounts"].append({"name": name, "mountPath": path})
        kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given=yaml.safe_dump_all(objects))


@pytest.fixture
def substitute(tmp_path, cluster):
    kubectl("delete", "events", "-n", "default", "--all")
    return Substitute(tmp_path)


def until(reached):
    deadline = time.monotonic() + LATEST
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(1)


def events(cluster):
    """The reasons of the guard's Events of the node."""
    listed = json.loads(kubectl("get", "events", "-n", "default", "-o", "json"))["items"]
    ours = [each for each in listed if (each.get("source") or {}).get("component") == "nodetune-guard"]
    assert {each["involvedObject"]["name"] for each in ours} <= {cluster.node}
    return [each["reason"] for each in sorted(ours, key=lambda each: each["metadata"]["creationTimestamp"])]


def reboot(cluster):
    """Another pod, and nothing of the one before."""
    kubectl("delete", "pods", "-n", "nodetune", "--all", "--wait=true")
    until(
        lambda: (
            "True" in kubectl("get", "pods", "-n", "nodetune", "-o", "jsonpath={..containerStatuses..started}").title()
        )
    )


def stays(cluster, status, seconds=LOOKS):
    """It stays so while the guard looks several times."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert cluster.condition()["status"] == status, cluster.condition()
        time.sleep(1)


def test_a_node_that_lost_a_gpu_is_not_released_by_a_reboot(cluster, substitute):
    substitute.gpus(8)
    substitute.installed("--enforce", "all")
    cluster.until("False")
    substitute.gpus(8, "lost@3=1")
    assert "gpu-lost" in cluster.until("True")["message"]
    substitute.gpus(7)
    reboot(cluster)
    stays(cluster, "True")
    until(lambda: cluster.condition()["message"] == "hardware-missing: 7 of 8 GPUs")
    substitute.gpus(0, *GONE)
    reboot(cluster)
    stays(cluster, "True")
    substitute.gpus(8)
    cluster.until("False")
    found = events(cluster)
    assert found[:2] == ["GatingChecksPass", "GatingCheckFails"]
    assert found[-1] == "GatingChecksPass"
    assert len(found) <= 6, found


def test_a_guard_that_cannot_judge_says_so(cluster, substitute):
    def ready(container):
        path = f"jsonpath={{..containerStatuses[?(@.name=='{container}')].ready}}"
        return kubectl("get", "pods", "-n", "nodetune", "-o", path).split()

    substitute.gpus(8)
    substitute.installed("--enforce", "gpu-lost")
    cluster.until("False")
    until(lambda: ready("check") == ready("reporter") == ["true"])
    substitute.gpus(8, "error=nvmlDeviceGetCount:999")
    until(lambda: cluster.condition()["reason"] == "GatingChecksNotJudged")
    found = cluster.condition()
    assert found["status"] == "False"
    assert found["message"].startswith("not judged since 20")
    assert "gpu-lost: " in found["message"]
    until(lambda: ready("check") == ready("reporter") == ["false"])
    substitute.gpus(8)
    until(lambda: cluster.condition()["reason"] == "GatingChecksPass")
    until(lambda: ready("check") == ready("reporter") == ["true"])
    assert events(cluster) == ["GatingChecksPass", "GatingChecksNotJudged", "GatingChecksPass"]
    restarts = kubectl("get", "pods", "-n", "nodetune", "-o", "jsonpath={..restartCount}").split()
    assert set(restarts) == {"0"}
