"""Files of the kernel that a measurement holds for a while: put back wherever it is killed. In a network of its own."""

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nodetune.measurements.host import kernel_files, temporary_settings
from nodetune.measurements.host import report as reporting

ROOT = Path(__file__).parents[3]
RMEM = "/proc/sys/net/ipv4/tcp_rmem"
CONGESTION = "/proc/sys/net/ipv4/tcp_congestion_control"
POINTS = 12
HELD = """
import json, os, signal, sys, time
sys.path.insert(0, {root!r})
from nodetune.measurements.host import kernel_files, report, temporary_settings
temporary_settings.FOLDER = {folder!r}
temporary_settings.RECORD, temporary_settings.TURN = {folder!r} + "/trial.json", {folder!r} + "/trial.turn"
wish, point, seconds = json.loads(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
me, count = os.getpid(), [0]
def at_a_point(real):
    def call(*given):
        if os.getpid() == me:
            count[0] += 1
            if count[0] == point:
                os.kill(me, signal.SIGKILL)
        return real(*given)
    return call
for module, names in ((kernel_files, ("_read", "put")), (temporary_settings, ("_write", "_load", "_guardian"))):
    for name in names:
        setattr(module, name, at_a_point(getattr(module, name)))
try:
    with temporary_settings.held(kernel_files.of_options({{"hold": wish, "allow_settings": True}})):
        print("held", flush=True)
        time.sleep(seconds)
except report.MeasurementError as problem:
    print(problem)
print(count[0])
"""


class Space:
    """A network namespace: its sysctls are its own."""

    def __init__(self, folder):
        self.name, self.folder = "nt" + secrets.token_hex(4), folder
        self.code = HELD.format(root=str(ROOT), folder=str(folder))

    def run(self, *words):
        words = ["ip", "netns", "exec", self.name, *map(str, words)]
        return subprocess.run(words, capture_output=True, text=True, check=False)

    def start(self, wish, point=0, seconds=0.0):
        words = ["ip", "netns", "exec", self.name, sys.executable, "-c", self.code, json.dumps(wish), point, seconds]
        return subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, text=True)

    def shown(self):
        found = self.run("cat", RMEM, CONGESTION).stdout.split()
        return [int(each) for each in found[:3]], found[3]

    def settled(self, wanted):
        """What holds once the process that restores is done."""
        end = time.monotonic() + 30
        while ((self.folder / "trial.json").exists() or self.shown() != wanted) and time.monotonic() < end:
            time.sleep(0.02)
        return self.shown()


@pytest.fixture
def space(tmp_path):
    if os.getuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2 (CI has both)")
    found = Space(tmp_path)
    subprocess.run(["ip", "netns", "add", found.name], check=True)
    found.run("sysctl", "-qw", "net.ipv4.tcp_rmem=4096 131072 6291456")
    yield found
    subprocess.run(["ip", "netns", "del", found.name], check=True)


def test_files_hold_meanwhile_and_are_restored(space):
    before = space.shown()
    process = space.start({RMEM: "4096 131072 50331648"}, seconds=2)
    assert process.stdout.readline() == "held\n"
    assert space.shown()[0] == [4096, 131072, 50331648]
    process.communicate()
    assert space.shown() == before and not (space.folder / "trial.json").exists()


def test_killed_at_each_point_the_files_are_restored(space):
    before, killed = space.shown(), 0
    for point in range(1, POINTS + 1):
        process = space.start({RMEM: "4096 131072 50331648", CONGESTION: before[1]}, point)
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
        assert space.settled(before) == before, point
    assert killed >= 10


def test_a_value_that_the_kernel_refuses_leaves_all_as_it_was(space):
    before = space.shown()
    out, _ = space.start({RMEM: "4096 131072 50331648", CONGESTION: "no_such_way"}).communicate()
    assert f"{CONGESTION}: no_such_way was rejected: " in out
    assert "held" not in out
    assert space.shown() == before and not (space.folder / "trial.json").exists()


def test_what_a_frozen_host_left_is_restored_by_the_next(space):
    before = space.shown()
    process = space.start({RMEM: "4096 131072 50331648"}, seconds=30)
    assert process.stdout.readline() == "held\n"
    for each in _below(process.pid):
        os.kill(each, signal.SIGKILL)
    process.communicate()
    assert space.shown() != before
    space.start({CONGESTION: before[1]}).communicate()
    assert space.shown() == before


def _below(pid):
    """The process and all below it, the deepest first."""
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout.split()
    return [*(each for child in found for each in _below(int(child))), pid]


def test_nothing_is_held_without_leave():
    with pytest.raises(reporting.MeasurementError, match="only with --allow-settings"):
        kernel_files.of_options({"hold": {RMEM: "1 2 3"}})


@pytest.mark.parametrize(
    "path",
    [
        "/proc/sys/kernel/core_pattern",
        "/etc/passwd",
        "/proc/sys/net/ipv4/../../kernel/core_pattern",
        "/sys/block/../../etc/queue/scheduler",
        "/sys/block/sda/queue/scheduler/../wbt_lat_usec",
        "/proc/sys/net/ipv4/tcp_rmem\n",
    ],
)
def test_no_other_file_can_be_named(path):
    for act in (kernel_files.current, kernel_files.put):
        with pytest.raises(reporting.MeasurementError, match="is not a file that a tuning may write"):
            act(path, "1")


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_files, "ALLOWED", kernel_files.re.compile(".*"))
    return tmp_path


def test_of_bytes_and_ratio_the_limit_that_counts_is_restored(files):
    for name, text in {"dirty_bytes": "0", "dirty_ratio": "20"}.items():
        (files / name).write_text(text + "\n")
    assert kernel_files.current(str(files / "dirty_bytes"), "1") == {str(files / "dirty_ratio"): "20"}
    (files / "dirty_bytes").write_text("4096\n")
    assert kernel_files.current(str(files / "dirty_bytes"), "1") == {str(files / "dirty_bytes"): "4096"}


def test_of_a_choice_the_chosen_word_is_put_back(files):
    (files / "scheduler").write_text("none [mq-deadline] kyber\n")
    path = str(files / "scheduler")
    assert kernel_files.current(path, "none") == {path: "mq-deadline"}


def test_a_value_that_the_kernel_does_not_keep_is_told(files):
    (files / "kept").symlink_to("/dev/null")
    with pytest.raises(reporting.MeasurementError, match="the kernel set  instead of 5"):
        kernel_files.put(str(files / "kept"), "5")


def test_the_first_value_before_counts_for_each_file(files):
    path = files / "nr_requests"
    path.write_text("64\n")
    found = temporary_settings._now([("kernel_files", str(path), "128"), ("kernel_files", str(path), "256")])
    assert found == [["kernel_files", str(path), "64"]]
