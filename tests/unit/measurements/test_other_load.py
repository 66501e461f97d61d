"""What others do on a host while it is measured: their CPU time and not our own, by name; and who computes on its GPUs."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from nodetune.measurements import disk
from nodetune.measurements.cuda import gpus
from nodetune.measurements.host import gpu_other_load, other_load
from nodetune.remote import payload
from nodetune.verify import remote
from tests.support.fake_pynvml import Replay, module
from tests.support.verifying import Run, busy, plan, planted

FORKS = """
import os, time
def measure(options, report):
    spent = 0.0
    pids = [os.fork() for _ in range(1)]
    if pids[0] == 0:
        with open("/proc/self/comm", "w") as file:
            file.write("nt-our-own")
        while time.process_time() < options["seconds"]:
            pass
        os._exit(0)
    os.waitpid(pids[0], 0)
    report.result("x", [1.0], "s")
"""


def done(tmp_path, monkeypatch, seconds=0.3):
    """What is said at the end of a measurement that computes for some seconds of CPU time."""
    monkeypatch.setattr(payload, "MEASUREMENTS", planted(tmp_path, forks=FORKS))
    asked = plan("forks")
    asked["measurements"][0].update(options={"seconds": seconds}, seconds=120)
    run = Run(asked)
    try:
        (event,) = (each for each in run.all().events if "done" in each)
    finally:
        run.close()
    assert run.records()[0]["samples"] == [1.0]
    return event


def test_other_busy_processes_are_told_with_share_and_name(tmp_path, monkeypatch):
    with busy(os.cpu_count()) as pids:
        event = done(tmp_path, monkeypatch)
    told = event["done"]["others"]
    assert told["cpu"] > 0.1
    assert told["cpu_seconds"] > 0
    named = [each for each in told["processes"] if each["name"] == "nt-busy-loop"]
    assert {each["pid"] for each in named} <= set(pids)
    assert remote.safe(event, plan("forks")) == [event], "all of it arrives"


def test_what_a_measurement_starts_itself_is_nobody_elses(tmp_path, monkeypatch):
    told = done(tmp_path, monkeypatch)["done"]["others"]
    assert "nt-our-own" not in [each["name"] for each in told["processes"]]


def test_a_measurement_that_lives_on_is_ours(monkeypatch):
    child = [{9: process(ticks, parent=os.getpid())} for ticks in (100, 800)]
    times = ([0] * 8, [900, 0, 0, 100, 0, 0, 0, 0])
    own = [other_load.own_seconds(found) for found in child]
    told = looks(monkeypatch, times, own, child)
    assert told["processes"] == []
    assert told["cpu_seconds"] == pytest.approx(2.0, abs=0.05), "of nine seconds, seven were the child's"


def looks(monkeypatch, times, own, processes, pressure=(None, None)):
    """Have a watch see these two looks at the host."""
    for name, found in (
        ("cpu_times", times),
        ("own_seconds", own),
        ("processes", processes),
        ("pressure", pressure),
    ):
        answer = iter(found).__next__
        monkeypatch.setattr(other_load, name, lambda *_, answer=answer: answer())
    monkeypatch.setattr(other_load.os, "sysconf", lambda name: 100)
    return other_load.Watch().seen()


def process(ticks, name="python3", kernel=False, start=5, parent=1):
    return other_load.Process(start, ticks, name, kernel, parent)


def test_others_exclude_us_idle_interrupts_and_kernel_threads(monkeypatch):
    #                      user nice system idle iowait irq softirq steal
    times = ([1000, 0, 100, 5000, 0, 0, 0, 0], [1500, 20, 180, 5300, 10, 30, 40, 20])
    early = {7: process(50), 8: process(10, "kworker/1:0", kernel=True), 9: process(900, "gone", start=1)}
    late = {7: process(300), 8: process(60, "kworker/1:0", kernel=True), 9: process(40, "new", start=800)}
    told = looks(monkeypatch, times, (1.0, 3.0), (early, late))
    assert told["cpu"] == 0.35, "of 1000 ticks 600 were busy, 200 ours and 50 a kernel thread's"
    assert told["cpu_seconds"] == 3.5
    assert told["steal"] == round(20 / 690, 3), "of what wanted to run"
    assert [(each["pid"], each["name"], each["cpu"]) for each in told["processes"]] == [
        (7, "python3", 0.25),
        (9, "new", 0.04),
    ]


def test_a_host_that_did_nothing_else_has_no_others(monkeypatch):
    times = ([0] * 8, [200, 0, 0, 800, 0, 0, 0, 0])
    told = looks(monkeypatch, times, (0.0, 2.02), ({}, {}))
    assert (told["cpu"], told["steal"], told["processes"]) == (0.0, 0.0, [])


def test_a_kernel_that_tells_nothing_leaves_nothing_to_tell(monkeypatch):
    assert looks(monkeypatch, ([], []), (0.0, 1.0), ({}, {})) == {}


HALF_DEAD = """
import ctypes, os, threading, time
def measure(options, report):
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)  # it need not die with its parent
        threading.Thread(target=lambda: (os.write(write, b"x"), time.sleep(300))).start()
        ctypes.PyDLL(None).pthread_exit(None)
    os.read(read, 1)
    while open("/proc/{}/stat".format(pid)).read().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.01)
    report.result("x", [pid], "s")
"""


def test_a_measurement_ends_with_the_last_thread_it_started(tmp_path, monkeypatch):
    """The kernel sums up the CPU time of a process when its last thread has ended; until then it would be that of others."""
    monkeypatch.setattr(payload, "MEASUREMENTS", planted(tmp_path, halfdead=HALF_DEAD))
    run = Run(plan("halfdead"))
    try:
        (event,) = (each for each in run.all().events if "done" in each)
        assert event["done"]["left"] == []
        with pytest.raises(ProcessLookupError):
            os.kill(int(run.records()[0]["samples"][0]), 0)
    finally:
        run.close()


# GPUs


@pytest.fixture
def gpu(monkeypatch):
    """(GPU0 as NVML sees it, the answers of which a test changes)."""
    monkeypatch.setattr(gpus, "_process", lambda pid, used: f"process {pid}")
    monkeypatch.setattr(gpu_other_load, "OURS", {})
    answers = {"nvmlDeviceGetComputeRunningProcesses": [], "nvmlDeviceGetCurrentClocksEventReasons": 1}
    library = module(Replay(count=1, answers=answers))
    return gpus.Seen("GPU0", library, library.nvmlDeviceGetHandleByIndex(0)), answers


def computing(answers, *pids):
    answers["nvmlDeviceGetComputeRunningProcesses"] = [SimpleNamespace(pid=pid, usedGpuMemory=None) for pid in pids]


def test_others_who_computed_before_or_after_us_are_named(gpu):
    seen, answers = gpu
    computing(answers, 71)
    watch = gpu_other_load.Watch([seen])
    computing(answers, 71, 4000)  # ours, whatever its number is in here
    watch.start()
    computing(answers, 71, 4000, 90)
    assert watch.told() == [{"gpu": "GPU0", "users": "process 71, process 90", "held": ""}]


def test_our_gpu_alone_is_not_worth_a_line(gpu):
    seen, answers = gpu
    watch = gpu_other_load.Watch([seen])
    computing(answers, 4000)
    watch.start()
    assert watch.told() == []


def test_a_gpu_that_we_keep_open_is_still_ours(gpu):
    seen, answers = gpu
    first = gpu_other_load.Watch([seen])
    computing(answers, 4000)
    first.start()
    assert first.told() == []
    second = gpu_other_load.Watch([seen])
    second.start()
    computing(answers, 4000, 90)
    assert second.told() == [{"gpu": "GPU0", "users": "process 90", "held": ""}]


def test_users_are_told_without_a_gpu_having_been_taken(gpu):
    seen, answers = gpu
    computing(answers, 71)
    assert gpu_other_load.Watch([seen]).told()[0]["users"] == "process 71"


def test_without_nvml_nobody_is_known():
    watch = gpu_other_load.Watch([gpus.Seen("GPU0")])
    watch.start()
    assert watch.told() == []


def test_what_held_the_clocks_down_most_of_the_time_is_told():
    assert gpu_other_load.held([]) == ""
    assert gpu_other_load.held([0x4, 0x4, 0x0]) == "sw_power_cap"
    assert gpu_other_load.held([0x4, 0x0, 0x0]) == ""
    assert gpu_other_load.held([0x82, 0x2]) == "applications_clocks_setting+hw_power_brake_slowdown"


# Disks

WRITES = """
import os, sys
handle = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
os.write(handle, os.urandom(32 << 20))
os.fsync(handle)
print("written", flush=True)
sys.stdin.read()
"""


def test_writes_by_another_process_are_told_as_its_share(tmp_path):
    before = disk.blocks(str(tmp_path))
    if before is None:
        pytest.skip("the kernel does not count what this file system's device moves")
    words = [sys.executable, "-c", WRITES, str(tmp_path / "file")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"written\n"
        after = disk.blocks(str(tmp_path))
        other.stdin.close()
    assert after[0] - before[0] >= 32 << 11
    assert disk.share_of_others(before, after)["others_io"] > 0.9
    assert disk.blocks(str(tmp_path))[1] - after[1] >= 32 << 11, "waited for, it is one of ours"


def test_the_share_of_others_on_a_disk_is_what_is_not_ours():
    assert disk.share_of_others((100, 10), (1100, 1010)) == {"others_io": 0.0}
    assert disk.share_of_others((100, 10), (1100, 260)) == {"others_io": 0.75}
    assert disk.share_of_others(None, None) == {}
