"""Two jobs on one node, each with a GPU of its own, where the driver asks to drain and reset the GPU of the one."""

import os
import subprocess

import pytest

from tests.unit.guard import install

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="slurmd runs prologs and epilogs as root")
DUE = "nodetune: gpu-recovery-needed: GPU0 0000:00:06.0: drain and reset the GPU, which no program uses now\n"


@pytest.fixture
def node(tmp_path, nvml, machine):
    program = install.plant_recovery(install.program(tmp_path / "program"))
    made = install.Node(tmp_path / "node", program, nvml, machine, seconds={"total": 60, "step": 30, "stuck": 20})
    made.write_entry(seconds=70)
    planted = made.library / "gpu0"
    planted.mkdir()
    (planted / "recovery_action").write_text(install.DRAIN_AND_RESET)
    return made


@pytest.fixture
def of_other_job(node):
    """A program of job 8, which computes on GPU 1."""
    there = node.library / "gpu1" / "processes"
    there.mkdir(parents=True)
    script = f"touch {there}/$$; echo up; read line"
    pipe = subprocess.PIPE
    with subprocess.Popen([*node.enter, "/bin/sh", "-c", script], stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout.readline() == "up\n"
        yield process
        process.stdin.close()


def end_of_job(node):
    return node.call("epilog", job="7", gpus="0")


def test_an_epilog_drains_for_no_reset_while_a_job_computes(node, of_other_job):
    assert of_other_job.poll() is None
    ended = end_of_job(node)
    assert ended == (0, "nodetune: pass\n")
    assert not (node.run_folder / "failed" / "7.json").exists()


def test_an_epilog_drains_for_a_reset_once_the_gpus_are_idle(node, of_other_job):
    of_other_job.stdin.close()
    of_other_job.wait()
    assert end_of_job(node) == (1, DUE)
    assert node.record()["checks"] == ["gpu-recovery-needed"]


def test_a_health_check_waits_for_the_whole_node(node, of_other_job):
    assert node.call("health").said == "nodetune: pass\n"
    of_other_job.stdin.close()
    of_other_job.wait()
    assert node.call("health").said.startswith(DUE.strip())


def test_only_a_job_on_the_gpu_that_waits_for_its_reset_is_held(node, of_other_job):
    assert of_other_job.poll() is None
    assert node.call("prolog", job="9", gpus="0").code == 1
    assert node.call("prolog", job="10", gpus="2").code == 0


def test_before_hopper_that_job_may_start_while_another_computes(node, of_other_job):
    (node.library / "architecture").write_text(install.AMPERE)
    assert node.call("prolog", job="9", gpus="0").code == 0
    of_other_job.stdin.close()
    of_other_job.wait()
    node.forget()
    assert node.call("prolog", job="9", gpus="0").code == 1
