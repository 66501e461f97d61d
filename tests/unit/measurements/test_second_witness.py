"""Each figure has the scale that it claims: counted again here, by the kernel, or by another program that measures the same."""

import ctypes
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from types import SimpleNamespace

import pytest

from nodetune.measurements import (
    clock,
    disk,
    disk_buffered,
    disk_files,
    gpu_latency,
    memory,
    memory_latency,
    nccl_overlap,
    wakeup,
)
from nodetune.measurements.host import report as reporting
from nodetune.measurements.nccl_support import nccl_results
from tests.unit.measurements.test_verify_host import measured, memory_library
from tests.unit.measurements.test_verify_nccl import TABLES, Heard, table
from tests.unit.measurements.test_verify_nccl_small import PATH
from tests.unit.measurements.test_verify_nccl_small import Heard as SmallHeard

CPU = min(os.sched_getaffinity(0))


@pytest.fixture
def told(tmp_path):
    """told(measurement, function) calls the function with a report, and returns what it reports: {(metric, subject): record}."""

    def told(measurement, function):
        path = tmp_path / "told"
        with path.open("wb") as out:
            function(reporting.Report(measurement, out.fileno()))
        sent = map(json.loads, path.read_text().splitlines())
        return {(each["metric"], each["subject"]): each for kind, each in sent if kind == "record"}

    return told


def ticking(seconds):
    """A clock that continues by so much each time that it is read."""
    now = [0.0]

    def read():
        now[0] += seconds
        return now[0]

    return SimpleNamespace(perf_counter=read)


def needed(program, package):
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"no {program} on this machine: apt install {package} (CI does)")
    return path


# Memory


def copier(copy, size):
    crew = memory.Crew.__new__(memory.Crew)
    crew.libc, crew.size = SimpleNamespace(memcpy=copy), size
    return crew


def test_a_copied_byte_counts_as_one_read_and_one_written(monkeypatch):
    copied = []
    monkeypatch.setattr(memory, "time", ticking(1.0))
    rate = copier(lambda target, source, size: copied.append(size), 1000)._copy_until(4.5, 0, 0)
    assert copied == [1000, 1000, 1000, 1000]
    assert rate == pytest.approx((4 * 1000 + 4 * 1000) / 5), "the clock was read six times, a second apart"


STREAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
/* STREAM's Copy (https://www.cs.virginia.edu/stream): bytes read and written, per second of CPU time. */
static double now(void) { struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_sec + t.tv_nsec / 1e9; }
int main(int argc, char **argv) {
  size_t n = strtoull(argv[1], 0, 10) / sizeof(double), times = argc > 2 ? atoi(argv[2]) : 10;
  double *a = malloc(n * sizeof *a), *c = malloc(n * sizeof *c);
  for (size_t j = 0; j < n; j++) a[j] = j, c[j] = 0;
  for (size_t k = 0; k < times; k++) {
    double start = now();
    for (size_t j = 0; j < n; j++) c[j] = a[j];
    double rate = 2.0 * n * sizeof(double) / (now() - start);
    if (c[k] != a[k]) return 1;
    printf("%f\n", rate);
  }
}
"""


@pytest.mark.slow
def test_stream_copies_as_much_in_a_second_of_cpu_time(tmp_path, monkeypatch):
    (tmp_path / "stream.c").write_text(STREAM)
    compiler = needed("gcc", "gcc")
    subprocess.run([compiler, "-O2", str(tmp_path / "stream.c"), "-o", str(tmp_path / "stream")], check=True)
    monkeypatch.setattr(memory, "time", SimpleNamespace(perf_counter=memory.time.thread_time))
    size, library, ours, theirs = memory.LARGEST // 2, memory_library(), [], []
    library.memcpy.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    with memory.Buffer(library, size, 1) as source, memory.Buffer(library, size, 0) as target:
        for _ in range(4):
            stream = [str(tmp_path / "stream"), str(size)]
            theirs += map(float, subprocess.run(stream, capture_output=True, check=True).stdout.split())
            ours += [copier(library.memcpy, size)._copy_until(0, target.address, source.address) for _ in range(10)]
    assert 1 / 1.5 < statistics.median(ours) / statistics.median(theirs) < 1.5, (ours, theirs)


def test_no_two_steps_through_memory_can_be_foreseen():
    steps, page = Counter(), 4096
    with memory_latency.Lines(memory_library(), 1 << 20) as lines:
        count, at = (1 << 20) // memory_latency.LINE, lines.at
        for _ in range(count):
            following = ctypes.c_uint64.from_address(at).value
            steps[following - at] += 1
            at = following
    assert sum(steps.values()) == count
    assert max(steps.values()) < count / 100, "a prefetcher that learns a distance would fetch the next line in time"
    assert sum(times for step, times in steps.items() if abs(step) < page) < count / 100, "or one that takes neighbours"


# CPUs


def test_a_wake_up_50_microseconds_late_is_told_as_50(told, monkeypatch):
    monkeypatch.setattr(wakeup, "late", lambda seconds, period: [50e-6] * 98 + [70e-6, 90e-6])
    found = told("wakeup", lambda report: wakeup.measure({"cpus": [CPU], "repeats": 1}, report))
    figures = {metric: (each["samples"], each["unit"]) for (metric, _), each in found.items()}
    assert figures == {
        "median": ([pytest.approx(50)], "µs"),
        "p99": ([pytest.approx(90)], "µs"),
        "longest": ([pytest.approx(90)], "µs"),
    }


@pytest.mark.slow
def test_cyclictest_sees_wake_ups_as_late_as_we_do():
    """Both at once on one core: whatever else runs there is in the way of both."""
    program = needed("cyclictest", "rt-tests")
    words = [
        program,
        "--default-system",
        f"--affinity={CPU}",
        "--threads=1",
        "--interval=5000",
        "--loops=300",
        "--verbose",
    ]
    theirs = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    (ours,) = [each["samples"][0] for each in measured("wakeup", cpus=[CPU], repeats=1) if each["metric"] == "median"]
    output, complaint = theirs.communicate(timeout=120)
    if theirs.returncode:
        pytest.skip(f"cyclictest does not run here: {complaint.strip()[-200:]}")
    late = sorted(map(int, re.findall(r"^\s*0:\s*\d+:\s*(\d+)$", output, re.MULTILINE)))
    assert len(late) > 100
    assert 1 / 100 < ours / max(1, late[len(late) // 2]) < 100, "µs are neither ms nor ns"


SPIN = """
import json, os, sys, time
from nodetune.measurements import jitter
os.sched_setaffinity(0, {int(sys.argv[1])})
wall, cpu = time.perf_counter(), time.thread_time()
found = jitter.spin(1.0)
print(json.dumps([found["lost"], 1 - (time.thread_time() - cpu) / (time.perf_counter() - wall)]))
"""


def test_what_a_core_loses_is_the_time_that_the_kernel_gave_to_others():
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as rival:
        try:
            os.sched_setaffinity(rival.pid, {CPU})
            words = [sys.executable, "-c", SPIN, str(CPU)]
            lost, others = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
        finally:
            rival.kill()
    assert others > 0.1
    assert lost == pytest.approx(others, abs=0.1), "ticks and interrupts count as ours for the kernel"


def test_the_clock_is_read_from_the_kernel_while_cores_compute(told, tmp_path, monkeypatch):
    khz = tmp_path / f"cpu{CPU}/cpufreq/scaling_cur_freq"
    khz.parent.mkdir(parents=True)
    khz.write_text("3200000\n")
    loads, busy, text = [], [], clock.files.text

    class Load(clock.Load):
        def __init__(self, cpus):
            super().__init__(cpus)
            loads.append(self)

    def read(path):
        if path == str(khz):
            busy.append([os.path.exists(f"/proc/{pid}") for load in loads[-1:] for pid in load._pids])
        return text(path)

    monkeypatch.setattr(clock, "Load", Load)
    monkeypatch.setattr(clock, "CPUS", f"{tmp_path}/cpu{{}}/")
    monkeypatch.setattr(clock, "files", SimpleNamespace(text=read))
    for pause in ("WARM_SECONDS", "BETWEEN_SECONDS"):
        monkeypatch.setattr(clock, pause, 0.0)
    found = told("clock", lambda report: clock.measure({"cpus": [CPU], "single": [CPU], "readings": 3}, report))
    assert {metric: each.get("samples") for (metric, _), each in found.items()} == {
        "clock": [3.2, 3.2, 3.2],
        "single": [3.2, 3.2, 3.2],
    }
    assert busy == [[], *[[True]] * 6], "each reading was made while the load ran"


# GPUs


def test_a_call_of_5_microseconds_is_told_as_5(monkeypatch):
    calls = gpu_latency.Calls.__new__(gpu_latency.Calls)
    calls.calls, calls.function, calls.stream = 10, None, None
    calls._raw = {name: lambda *_: 0 for name in ("cuLaunchKernel", "cuStreamSynchronize")}
    monkeypatch.setattr(gpu_latency, "time", ticking(5e-6))
    assert calls.single(calls.launch) == pytest.approx(5)
    assert calls.in_a_row() == pytest.approx(5 / 10), "the clock was read twice for ten launches"


@pytest.mark.parametrize("name", TABLES)
def test_a_record_of_nccl_has_the_busbw_that_nccl_tests_print(name):
    found, printed = table(name)
    large = [(case, seconds) for case, seconds, _ in found if case[0] >= 64 << 20]
    for (size, in_place), seconds in large:
        report = Heard()
        case = {"name": name, "size": size, "in_place": in_place}
        nccl_results.record(report, "GPU0-7", case, [seconds], 8, {})
        (record,) = report.records
        algbw, busbw = printed[size, in_place]
        assert record["samples"] == [pytest.approx(busbw, rel=1e-3)]
        assert record["about"]["algbw"] == pytest.approx(algbw, rel=1e-3)
    assert any(algbw != busbw for algbw, busbw in printed.values()) is (name != "sendrecv")


def test_a_collective_with_a_product_has_that_busbw_as_well():
    found, printed = table("all_reduce")
    (size, _), seconds, _ = max((each for each in found if not each[0][1]), key=lambda each: each[0][0])
    case = {"name": "all_reduce", "size": size, "in_place": False}
    part = {"number": 0, "wrong": 0, "wrong_everywhere": 0, "iterations": 20, "path": PATH, "chosen": {}}
    part.update(alone=seconds, seconds=[2 * seconds], gemm_alone=700.0, gemm=[600.0])
    heard = SmallHeard()
    jobs = [{"rank": 0, "gpu": "GPU0", "check": True, "dtype": "float32"}]
    nccl_overlap.Results([case], jobs, {"gpus": 8}, "GPU0-7", heard).take(0, part)
    (moved, _), (algbw, busbw) = heard.records, printed[size, False]
    assert algbw != busbw
    assert (moved["about"]["alone"], moved["samples"]) == (
        pytest.approx(busbw, rel=1e-3),
        [pytest.approx(busbw / 2, rel=1e-3)],
    )


# Disks


@pytest.fixture
def traced(tmp_path):
    """traced(measurement, options) runs it, and returns the calls that open and fsync files, as the kernel sees them."""

    def traced(name, **options):
        log = tmp_path / "calls"
        strace = [needed("strace", "strace"), "-f", "-y", "-o", str(log), "-e", "trace=openat,fsync,fdatasync"]
        words = json.dumps({"dir": str(tmp_path), "repeats": 1, **options})
        measurement = [sys.executable, "-m", "nodetune.measurements", name, words, "120"]
        done = subprocess.run([*strace, *measurement], capture_output=True, text=True, check=False)
        if "PTRACE" in done.stderr:
            pytest.skip(f"no program may be traced here: {done.stderr.strip()[-200:]}")
        assert '"samples"' in done.stdout, done.stdout
        return log.read_text()

    return traced


def test_the_kernel_sees_the_disk_write_and_read_a_file_once(told, tmp_path, monkeypatch):
    if disk.mount_of(str(tmp_path))["file_system"] in ("tmpfs", "ramfs"):
        pytest.skip("the temporary folder of this machine is memory")
    clocks = SimpleNamespace(perf_counter=ticking(1.0).perf_counter, monotonic=time.monotonic)
    monkeypatch.setattr(disk_buffered, "time", clocks)
    before = resource.getrusage(resource.RUSAGE_SELF)
    options = {"dir": str(tmp_path), "size": disk.MIN_BYTES, "repeats": 1}
    found = told("disk_buffered", lambda report: disk_buffered.measure(options, report))
    after = resource.getrusage(resource.RUSAGE_SELF)
    figures = {metric: each.get("samples") for (metric, _), each in found.items()}
    size = next(iter(found.values()))["about"]["size"]
    assert figures == {name: [pytest.approx(size / seconds / 1e9)] for name, seconds in TICKS.items()}
    moved = [512 * (after.ru_oublock - before.ru_oublock) / size, 512 * (after.ru_inblock - before.ru_inblock) / size]
    assert [0.9 < each < 1.5 for each in moved] == [True, True], moved


TICKS = {"write": 1, "write_fsync": 2, "read": 1}
"""The clock is read at the start and the end of each, a second apart."""


@pytest.mark.slow
def test_fio_opens_the_file_past_the_page_cache(traced):
    needed("fio", "fio")
    if disk.mount_of(tempfile.gettempdir())["file_system"] in ("tmpfs", "ramfs"):
        pytest.skip("the temporary folder of this machine is memory")
    calls = traced("disk", size=disk.MIN_BYTES, seconds=1, jobs=1, metrics=["read"])
    opened = re.findall(r'openat\(\S+, "/proc/self/fd/\d+", (\S+)\)', calls)
    assert opened
    assert [flags for flags in opened if "O_DIRECT" not in flags.split("|")] == []


def test_the_kernel_sees_an_fsync_of_each_file_that_has_one(traced):
    count, calls = 50, traced("disk_files", count=50)
    made = re.findall(r'openat\(\d+<\S+>, "(s?\d+)", \S*O_CREAT', calls)
    synced = re.findall(r"f(?:data)?sync\(\d+<\S+/(s?\d+)>", calls)
    assert sorted(synced) == sorted(name for name in made if name.startswith("s"))
    assert (len(synced), len(made)) == (count // disk_files.FSYNCED, count + count // disk_files.FSYNCED)
