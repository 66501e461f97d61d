"""The check of a pod's own GPUs, as an init container runs it: as a script of the image."""

import json
import re
import subprocess

import pytest

from nodetune.guard.deploy.kubernetes import image
from tests.support import archives
from tests.unit.guard.install import PYTHON


class Pod:
    """The image's files in a folder, where the script finds the node's interpreter and the test's folders."""

    def __init__(self, node):
        self.node, self.folder, self.log = node, node.folder / "image", node.folder / "termination-log"
        self.log.touch()
        image.write(str(node.folder / "program.tar"))
        archives.unpack(node.folder / "program.tar", self.folder)
        self.script = self.folder / image.CHECK.strip("/")
        self.set(python=PYTHON)

    def set(self, python):
        text = image.SCRIPT.format(start=" ".join(image.pods.START), policy=image.POLICY)
        moved = text.replace("/opt/", f"{self.folder}/opt/").replace("/dev/termination-log", str(self.log))
        self.script.write_text(moved.replace("python3 ", f"{python} "))

    def start(self):
        """Whether the pod starts, what the check said, and the termination message."""
        environment = {**self.node.environment()} if self.node.nvml else {}
        ended = subprocess.run(
            [*self.node.enter, "sh", self.script], capture_output=True, text=True, env=environment, check=False
        )
        return ended.returncode == 0, ended.stdout, self.log.read_text()


@pytest.fixture
def pod(node):
    return Pod(node)


def test_a_pod_with_good_gpus_starts(pod):
    assert pod.start() == (True, "nodetune: pass\n", "")


def test_a_pod_with_a_bad_gpu_ends_with_the_reason(pod):
    pod.node.control("lost@3=1")
    reason = "nodetune: gpu-lost: GPU3: NVML: GPU is lost\n"
    assert pod.start() == (False, reason, reason)


def test_a_pod_on_a_driver_that_hangs_ends_with_the_reason(pod):
    """Only time in which the check could run counts, so that it needs a small part of its nine seconds."""
    path = pod.folder / image.POLICY.strip("/")
    given = json.loads(path.read_text())
    path.write_text(json.dumps({**given, "seconds": {**given["seconds"], "step": 0.5}}))
    pod.node.control("hang@3=nvmlDeviceGetTemperature:forever")
    starts, _, message = pod.start()
    assert not starts
    assert re.match(
        r"nodetune: nvml-not-answering: did not return within \d\.\d s in nvmlDeviceGetTemperature", message
    )


def test_a_pod_that_sees_some_gpus_of_the_node_is_not_judged_by_the_others(pod):
    pod.node.control("count=4")
    assert pod.start() == (True, "nodetune: pass\n", "")


@pytest.mark.parametrize("fault", ["error@3=nvmlDeviceGetTemperature:999", "driver_not_loaded=1"])
def test_a_pod_whose_gpus_cannot_be_judged_starts(pod, fault):
    pod.node.control(fault)
    starts, said, message = pod.start()
    assert (starts, message) == (True, "")
    assert said.startswith("nodetune: ")


def test_a_pod_without_gpus_or_with_a_broken_check_starts(bare):
    pod = Pod(bare)
    starts, said, message = pod.start()
    assert (starts, message) == (True, "")
    assert "request the pod's GPUs for the init container, too" in said
    (pod.folder / image.POLICY.strip("/")).write_text("{")
    assert pod.start()[0] is True
    pod.set(python="/no/python")
    assert pod.start() == (True, "", "")
