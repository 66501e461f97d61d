"""What disrupts is refused where a GPU computes, and where that cannot be told. NVML is the substitute (tests/machines/nvml)."""

import os
import subprocess
import sys

import pytest
from nodetune_host import idle
from nodetune_host.problem import StopError, WaitError

from tests.integration.slurm.lab import no_slurm


class Driver:
    def __init__(self, folder, library):
        self.folder, self.library = folder, library
        folder.mkdir(parents=True)

    def control(self, *lines):
        (self.folder / "control").write_text("".join(f"{line}\n" for line in lines))

    def compute(self, gpu, pid):
        processes = self.folder / f"gpu{gpu}" / "processes"
        processes.mkdir(parents=True)
        (processes / str(pid)).write_text("1000000")

    def check(self, wanted="{'gpu_idle': True}", seconds=60):
        """What the guard says in a process of its own; "" when it lets pass."""
        code = f"""
import sys
sys.path[:0] = {sys.path!r}
from nodetune_host import idle
from nodetune_host.problem import StopError
idle.NVML_SECONDS = {seconds}
try:
    idle.require({wanted})
except StopError as stop:
    print(stop)
"""
        env = {
            **os.environ,
            "LD_LIBRARY_PATH": str(self.library),
            "NODETUNE_NVML_RUN": str(self.folder),
            "NODETUNE_NVML_LIB": str(self.folder / "lib"),
        }
        return subprocess.run([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True).stdout.strip()


@pytest.fixture
def driver(library, tmp_path):
    return Driver(tmp_path / "nvml", library)


def test_idle_gpus_let_pass(driver):
    assert driver.check() == ""


def test_a_computing_process_is_named_with_gpu_and_command(driver):
    driver.compute(5, os.getpid())
    said = driver.check()
    assert said.startswith(f"GPU5 is in use by process {os.getpid()} (")
    assert "python" in said
    assert said.endswith("): nothing is changed")


def test_a_process_that_ended_in_between_has_no_command():
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert idle._command(ended.pid) == "its command is not visible here"


def test_a_host_without_nvml_has_no_gpu_in_use(driver, tmp_path):
    driver.library = tmp_path
    assert driver.check() == ""


def test_a_driver_that_is_not_loaded_has_no_gpu_in_use(driver):
    driver.control("driver_not_loaded=1")
    assert driver.check() == ""


@pytest.mark.parametrize("fault", ["lost@3=1", "version_mismatch=1"])
def test_a_driver_that_fails_is_no_idle_gpu(driver, fault):
    driver.control(fault)
    assert driver.check().startswith("unknown whether GPUs are in use, so nothing is changed: ")


def test_a_driver_that_hangs_is_left_behind_and_the_call_named(driver):
    driver.control("hang=nvmlDeviceGetComputeRunningProcesses_v3:30")
    said = driver.check(seconds=2)
    assert "did not answer within 2 s (at GPU0: nvmlDeviceGetComputeRunningProcesses)" in said


def test_a_node_without_a_scheduler_is_out_of_service(driver):
    with no_slurm():
        assert driver.check("{'drained': True}") == ""


def test_a_node_of_kubernetes_is_what_the_cluster_says():
    with no_slurm():
        idle.require({"drained": True, "kubernetes": ""})
        with pytest.raises(WaitError, match="pods may start here"):
            idle.require({"drained": True, "kubernetes": "pods may start here"})


def test_nothing_is_asked_where_nothing_must_hold():
    idle.require({"gpu_idle": False, "drained": False})


def test_a_guard_unknown_to_this_version_lets_nothing_pass():
    with pytest.raises(StopError, match="does not support guard moon_full: nothing is changed"):
        idle.require({"moon_full": True})
