"""Settings of GPUs for the time of a measurement, over the substitute NVML: given back wherever it is killed."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support import nvml_substitute

ROOT = Path(__file__).parents[3]
POINTS = 20

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(nvml_substitute.compiler_missing()), reason=nvml_substitute.compiler_missing()),
    pytest.mark.skipif(os.geteuid() != 0, reason="NVML lets only root set anything, and so does the stand-in"),
]

HEAD = """
import json, os, signal, sys, time
sys.path.insert(0, {root!r})
from nodetune.measurements.cuda import gpus
from nodetune.measurements.host import gpu_settings, report, temporary_settings
for module, name in ((temporary_settings, "RECORD"), (temporary_settings, "TURN"), (gpu_settings, "LOCKS")):
    setattr(module, name, {folder!r} + "/" + os.path.basename(getattr(module, name)))
temporary_settings.FOLDER = {folder!r}
saying = report.Report("x", None)
saying.step = lambda text: None
library = gpus.nvml(saying)
found = [gpus.Seen("GPU%d" % n, library, library.nvmlDeviceGetHandleByIndex(n)) for n in (0, 1)]
WISH = {{"power_limit": 500000, "locked_clocks": [1005, 1005]}}
"""
KILLED = """
count, me, real, point = [0], os.getpid(), gpu_settings._call, int(sys.argv[1])
def call(*given):
    if os.getpid() == me:
        count[0] += 1
        if count[0] == point:
            os.kill(me, signal.SIGKILL)
    return real(*given)
gpu_settings._call = call
with temporary_settings.held(gpu_settings.of_gpus(WISH, found)):
    call(library, "", "nvmlDeviceGetCount")
    call(library, "", "nvmlDeviceGetCount")
print(count[0])
"""
HOLD = """
try:
    with temporary_settings.held(gpu_settings.of_gpus(WISH, found)):
        print("held", flush=True)
        time.sleep(float(sys.argv[1]))
except report.MeasurementError as problem:
    print(problem)
"""
SHOW = """
print(json.dumps([
    [library.nvmlDeviceGetPowerManagementLimit(each.handle), library.nvmlDeviceGetClockInfo(each.handle, 1)]
    for each in found
]))
"""


@pytest.fixture(scope="session")
def library():
    return nvml_substitute.library()


class Node:
    """A host whose driver keeps what is set in files. GPUs are at work, so that their clocks show."""

    def __init__(self, library, folder):
        self.folder, running = folder, folder / "nvml-run"
        for gpu in (0, 1):
            (running / f"gpu{gpu}/processes").mkdir(parents=True)
            (running / f"gpu{gpu}/processes/{os.getpid()}").write_text("1000000")
        (running / "control").write_text("keep_without_clients=1\n")
        self.env = {
            **os.environ,
            "LD_LIBRARY_PATH": str(library),
            "NODETUNE_NVML_RUN": str(running),
            "NODETUNE_NVML_LIB": str(folder / "nvml-lib"),
        }
        self.head = HEAD.format(root=str(ROOT), folder=str(folder))

    def start(self, code, *words):
        command = [sys.executable, "-c", self.head + code, *map(str, words)]
        return subprocess.Popen(command, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def out(self, code, *words):
        process = self.start(code, *words)
        out, problem = process.communicate()
        return process.returncode, out, problem

    def shown(self):
        return json.loads(self.out(SHOW)[1])

    @property
    def record(self):
        return self.folder / "trial.json"

    def settled(self, wanted):
        """What the driver has once the process that restores is done."""
        end = time.monotonic() + 30
        while (self.record.exists() or self.shown() != wanted) and time.monotonic() < end:
            time.sleep(0.05)
        return self.shown()


@pytest.fixture
def node(library, tmp_path):
    return Node(library, tmp_path)


FREE = [[700_000, 1980]] * 2


def test_settings_hold_meanwhile_and_are_given_back(node):
    process = node.start(HOLD, 3)
    assert process.stdout.readline() == "held\n"
    assert node.shown() == [[500_000, 1005]] * 2
    process.communicate()
    assert process.returncode == 0
    assert node.shown() == FREE and not node.record.exists()


@pytest.mark.parametrize("locked", [False, True], ids=["free", "locked-by-nodetune"])
def test_killed_at_20_points_the_settings_are_as_before(node, locked):
    before = FREE
    if locked:  # the site's own settings, as nodetune-gpu.service keeps them
        uuids = (
            "json.dumps({gpu_settings._key(each, '').rstrip('/'): {'locked_clocks': [1500, 1500]} for each in found})"
        )
        lock = "[library.nvmlDeviceSetGpuLockedClocks(each.handle, 1500, 1500) for each in found]\n"
        limit = "[library.nvmlDeviceSetPowerManagementLimit(each.handle, 600000) for each in found]\n"
        node.out(f"{lock}{limit}open(gpu_settings.LOCKS, 'w').write({uuids})")
        before = [[600_000, 1500]] * 2
    assert node.shown() == before
    killed = 0
    for point in range(1, POINTS + 1):
        status, out, problem = node.out(KILLED, point)
        killed += status == -9
        assert status in (0, -9), problem
        assert node.settled(before) == before, point
    status, out, _ = node.out(KILLED, 0)
    assert status == 0 and killed == min(POINTS, int(out)) >= 10


def test_a_tuning_during_another_is_refused_and_changes_nothing(node):
    process = node.start(HOLD, 3)
    assert process.stdout.readline() == "held\n"
    assert "another tuning holds settings" in node.out(HOLD, 0)[1]
    assert node.shown() == [[500_000, 1005]] * 2
    process.kill()
    process.communicate()
    assert node.settled(FREE) == FREE


def test_what_a_power_cut_takes_needs_no_restoring(node, tmp_path):
    process = node.start(HOLD, 30)
    assert process.stdout.readline() == "held\n"
    children = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout.split()
    for each in [*children, str(process.pid)]:
        os.kill(int(each), 9)
    process.communicate()
    node.record.unlink(missing_ok=True)  # /run is empty after a boot, and so is the driver
    shutil.rmtree(tmp_path / "nvml-run/gpu0")
    shutil.rmtree(tmp_path / "nvml-run/gpu1")
    assert [limit for limit, _ in node.shown()] == [700_000, 700_000]
    assert node.out(HOLD, 0)[1] == "held\n"


def test_the_supervisor_restores_what_a_killed_helper_left(node):
    process = node.start(HOLD, 30)
    assert process.stdout.readline() == "held\n"
    children = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout.split()
    for each in [*children, str(process.pid)]:
        os.kill(int(each), 9)
    process.communicate()
    assert node.shown() == [[500_000, 1005]] * 2 and node.record.exists()
    status, out, problem = node.out("print(temporary_settings.restore())")
    assert (status, out) == (0, "None\n"), problem
    assert node.shown() == FREE and not node.record.exists()


def test_a_gpu_that_refuses_leaves_all_as_it_was(node):
    status, out, _ = node.out(HOLD.replace("WISH", "{'power_limit': 9000000}"), 0)
    assert status == 0 and "nvmlDeviceSetPowerManagementLimit: Invalid Argument" in out
    assert node.shown() == FREE and not node.record.exists()
