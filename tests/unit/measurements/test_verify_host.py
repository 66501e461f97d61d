"""What a host's memory, cores and disks do, measured for real on this one; and the arithmetic of it."""

import ctypes
import json
import os
import shutil
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest

from nodetune.measurements import clock, disk, jitter, memory
from nodetune.measurements.host import external_tool, numa
from nodetune.measurements.host import report as reporting


def measured(name, **options):
    """The records of one measurement, in a process of its own as ever."""
    command = [sys.executable, "-m", "nodetune.measurements", name, json.dumps(options), "120"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


# Memory


def test_the_memory_of_every_node_is_measured_and_verified():
    found = measured("memory", repeats=2)
    local = {record["subject"]: record for record in found if record["metric"] == "local"}
    assert set(local) == {f"node{number}" for number in numa.nodes()}
    for record in local.values():
        assert len(record["samples"]) == 2
        assert all(sample > 0.1 for sample in record["samples"])
        assert record["unit"] == "GB/s"
        assert record["about"]["counted"] == "read + written"
        assert record["about"]["checked"]
        assert record["about"]["local"]


def test_remote_memory_is_measured_and_all_pairs_on_demand():
    assert memory.far_pairs([0, 1, 2], "ring") == [(0, 1), (1, 2), (2, 0)]
    assert memory.far_pairs([0, 1], "ring") == [(0, 1), (1, 0)]
    assert memory.far_pairs([0], "ring") == memory.far_pairs([], "ring") == memory.far_pairs([0, 1], "none") == []
    assert len(memory.far_pairs([0, 1, 2, 3], "all")) == 12


def test_far_memory_is_also_a_share_of_what_it_gives_near(monkeypatch):
    rates, figures = {(0, 0): 200.0, (1, 1): 180.0, (0, 1): 90.0, (1, 0): None}, []
    monkeypatch.setattr(memory.numa, "nodes", lambda: {0: [0], 1: [1]})
    monkeypatch.setattr(memory, "_one", lambda _report, _metric, node, there, *_: rates[node, there])
    report = types.SimpleNamespace(result=lambda *figure, **about: figures.append((figure, about["metric"])))
    memory.measure({}, report)
    assert figures == [(("node0→node1", [50.0], "%"), "far_share")], "the way that failed has no share"


def test_a_buffer_is_memory_to_which_the_kernel_gives_huge_pages():
    with memory.Buffer(memory_library(), 8 << 20, 0) as buffer:
        (kind,) = (rights for first, last, rights in mappings() if first <= buffer.address < last)
    assert kind == "rw-p", "shared memory has a switch of its own (shmem_enabled), which is off"


def memory_library():
    library = ctypes.CDLL(None)
    library.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    library.memset.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)
    return library


def mappings():
    for line in Path("/proc/self/maps").read_text().splitlines():
        addresses, rights = line.split()[:2]
        first, _, last = addresses.partition("-")
        yield int(first, 16), int(last, 16), rights


def test_buffers_exceed_the_caches_and_fit_into_free_memory():
    gib = 1 << 30
    assert memory.buffer_size(threads=48, free=500 * gib, cache=384 << 20) == memory.LARGEST
    alone = memory.buffer_size(threads=1, free=500 * gib, cache=384 << 20)
    assert 2 * alone >= memory.CACHES * (384 << 20)
    little = memory.buffer_size(threads=48, free=8 * gib, cache=256 << 20)
    assert 256 << 20 <= 2 * 48 * little <= 2 * gib


@pytest.mark.parametrize("free", [0, 100 << 20, 1 << 30])
def test_too_little_free_memory_is_said_and_not_measured(free):
    with pytest.raises(reporting.MeasurementError, match=f"only {free >> 20} MiB .* free"):
        memory.buffer_size(threads=48, free=free, cache=384 << 20)


def test_a_thread_that_fails_ends_the_others_and_is_named(monkeypatch):
    monkeypatch.setattr(numa, "node_of", lambda address: 7)
    with pytest.raises(reporting.MeasurementError, match="memory requested from node 0 came from node 7"):
        memory.Crew(sorted(os.sched_getaffinity(0)), 0, 4 << 20)


# Jitter


def test_gaps_of_every_core_are_measured():
    found = measured("jitter", seconds=0.3, repeats=2)
    cpus = {record["subject"] for record in found}
    assert cpus <= {f"cpu{number}" for number in os.sched_getaffinity(0)}
    for record in found:
        assert len(record["samples"]) == 2
        assert record["better"] == "lower"
        assert 5 < record["about"]["floor_ns"] < 100_000
    by_metric = {record["metric"]: record for record in found if record["subject"] == min(cpus)}
    assert set(by_metric) == {"longest", "p999", "lost"}
    assert max(by_metric["longest"]["samples"]) >= max(by_metric["p999"]["samples"])


def test_a_core_that_others_use_too_is_seen_to_be_taken_away():
    cpu = min(os.sched_getaffinity(0))
    with clock.Load([cpu]):
        found = {record["metric"]: record for record in measured("jitter", seconds=0.5, repeats=1, cpus=[cpu])}
    assert found["longest"]["about"]["preempted"] > 0
    assert found["lost"]["samples"][0] > 10


def test_the_gap_of_one_in_a_thousand_readings():
    many = [float(number) for number in range(1, 101)]
    found = jitter.gaps(many, count=50_000, limit=0.5, seconds=100_000.0)
    assert (found["p999"], found["at_most"]) == (50.0, False), "50 of 50,000 readings exceed it"
    assert (found["longest"], found["lost"]) == (100.0, sum(many) / 100_000.0)


def test_few_kept_gaps_give_the_limit_instead():
    found = jitter.gaps([3.0, 9.0], count=50_000, limit=0.5, seconds=10.0)
    assert (found["p999"], found["at_most"], found["longest"]) == (0.5, True, 9.0)
    assert jitter.gaps([], count=50_000, limit=0.5, seconds=10.0)["longest"] == 0.5
    assert jitter.gaps([3.0] * 50, count=50_000, limit=0.5, seconds=1000.0)["at_most"]


# Clock

CPUINFO = """processor\t: 0
vendor_id\t: GenuineIntel
cpu MHz\t\t: 3800.123
flags\t\t: fpu vme

processor\t: 1
cpu MHz\t\t: 2000.000
"""


def test_clocks_of_cpuinfo():
    assert clock.cpuinfo(CPUINFO) == {0: 3.800123, 1: 2.0}
    assert clock.cpuinfo("processor\t: 0\nBogoMIPS\t: 2000.00\n") == {}


def test_the_clock_is_measured_or_it_is_said_why_not():
    found = measured("clock", readings=2)
    assert found
    for record in found:
        if "skip" in record:
            assert "virtual machine" in record["skip"] or "no CPU clock" in record["skip"]
        else:
            assert all(0.2 < sample < 10 for sample in record["samples"])
            assert record["unit"] == "GHz"


def test_the_load_is_gone_afterwards():
    with clock.Load(sorted(os.sched_getaffinity(0))) as load:
        pids = list(load._pids)
        assert pids
        assert all(os.path.exists(f"/proc/{pid}") for pid in pids)
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)


# NUMA


def test_a_thread_and_its_memory_can_be_kept_on_each_node():
    code = """
import ctypes, mmap, os
from nodetune.measurements.host import numa
for node, cpus in numa.nodes().items():
    numa.run_on(cpus)
    numa.allocate_on(node)
    assert os.sched_getaffinity(0) == set(cpus)
    area = mmap.mmap(-1, 1 << 20)
    area.write(b"x" * (1 << 20))
    assert numa.node_of(ctypes.addressof(ctypes.c_char.from_buffer(area))) in (None, node)
    assert numa.free_bytes(node) > 0
before = numa.nodes()
numa.run_on([min(os.sched_getaffinity(0))])
assert numa.nodes() == before, "a thread that is kept on a CPU can be sent to another one"
numa.allocate_on(None)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_node_that_is_not_there_is_named():
    with pytest.raises(reporting.MeasurementError, match="memory of NUMA node 900: "):
        numa.allocate_on(900)


def test_a_pci_device_that_is_not_there_has_no_node():
    assert numa.gpu_node("00000000:FF:1F.7") is None


# Disk


@pytest.fixture
def fio():
    path = external_tool.find("fio")
    if path is None:
        pytest.skip("no fio on this machine: apt install fio (CI does)")
    return path


def test_a_folder_is_measured_and_nothing_is_left_in_it(fio, tmp_path):
    found = measured("disk", dir=str(tmp_path), size=128 << 20, seconds=1, repeats=1, jobs=2)
    assert [record.get("failed") for record in found] == [None] * len(found)
    units = {record["metric"]: record["unit"] for record in found}
    assert units == {"write": "GB/s", "read": "GB/s", "random_read": "k/s", "random_read_p99": "µs"}
    assert all(record["samples"][0] > 0 for record in found)
    assert found[0]["about"]["file_system"] == disk.mount_of(str(tmp_path))["file_system"]
    assert os.listdir(tmp_path) == []


STAND_IN_FIO = """#!/bin/sh
[ "$1" = --enghelp ] && exec echo libaio
cat <<'.'
{"jobs": [{"error": 0,
  "read": {"bw_bytes": 2500000000, "iops": 250000, "clat_ns": {"percentile": {"99.000000": 480000}}},
  "write": {"bw_bytes": 1500000000, "iops": 1500}}]}
.
"""


def test_what_fio_counts_is_told_in_the_units_of_the_records(tmp_path, monkeypatch):
    program = tmp_path / "fio"
    program.write_text(STAND_IN_FIO)
    program.chmod(0o755)
    monkeypatch.setattr(external_tool, "need", lambda *_: str(program))
    with (tmp_path / "told").open("wb") as out:
        report = reporting.Report("disk", out.fileno())
        disk.measure({"dir": str(tmp_path), "size": disk.MIN_BYTES, "repeats": 1}, report)
    told = [json.loads(line) for line in (tmp_path / "told").read_text().splitlines()]
    found = {each["metric"]: (each["samples"], each["unit"]) for kind, each in told if kind == "record"}
    assert found == {
        "write": ([1.5], "GB/s"),
        "read": ([2.5], "GB/s"),
        "random_read": ([250.0], "k/s"),
        "random_read_p99": ([480.0], "µs"),
    }


def test_the_file_has_no_name_while_it_is_used(tmp_path):
    handle = disk.nameless(str(tmp_path))
    assert os.listdir(tmp_path) == []
    disk.fill(handle, 3 << 20)
    assert os.fstat(handle).st_size == 3 << 20
    os.close(handle)


def test_a_link_in_the_place_of_the_file_is_not_followed(tmp_path):
    (tmp_path / "precious").write_text("keep")
    (tmp_path / f".nodetune-disk-{os.getpid()}").symlink_to(tmp_path / "precious")
    with pytest.raises(reporting.MeasurementError, match="cannot create a file in"):
        disk.nameless(str(tmp_path))
    assert (tmp_path / "precious").read_text() == "keep"


def test_nothing_but_a_folder_is_measured_in(fio, tmp_path):
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", "/dev/null", tmp_path / "missing"):
        (record,) = measured("disk", dir=str(path))
        assert record["failed"] == f"{path} is not a folder: give one on the file system to measure"
    assert (tmp_path / "file").read_text() == "x"


NVME = "devices/pci0000:00/0000:00:01.0/0000:01:00.0/nvme/nvme0/nvme0n1"


@pytest.fixture
def drive(tmp_path):
    """A /sys with an NVMe drive of PCIe 4.0 x4 in a slot of 3.0 x4: (its folder, a function that names a device number)."""
    place = tmp_path / NVME
    (place / "nvme0n1p2" / "slaves").mkdir(parents=True)
    (place / "nvme0n1p2" / "partition").write_text("2\n")
    (place.parent / "model").write_text("ACME 9A3  \n")
    (place / "device").symlink_to("..")
    (place.parent / "device").symlink_to("../..")
    for device, speed in ((place.parents[2], "16.0"), (place.parents[3], "8.0")):
        (device / "max_link_speed").write_text(f"{speed} GT/s PCIe\n")
        (device / "max_link_width").write_text("4\n")
    (tmp_path / "dev/block").mkdir(parents=True)
    (tmp_path / "class/block").mkdir(parents=True)
    (tmp_path / "class/block/nvme0n1p2").symlink_to(place / "nvme0n1p2")

    def number(target):
        (tmp_path / "dev/block/259:1").symlink_to(target)
        return disk.drive_of(os.makedev(259, 1), str(tmp_path))

    return place, number


def test_a_drive_is_told_with_the_link_of_drive_and_slot(drive):
    place, number = drive
    assert number(place / "nvme0n1p2") == {"drive": "ACME 9A3", "drive_link": {"generation": 3, "width": 4}}


def test_a_volume_on_one_drive_is_told_and_one_on_two_is_not(drive, tmp_path):
    _, number = drive
    volume = tmp_path / "devices/virtual/block/dm-0"
    (volume / "slaves/nvme0n1p2").mkdir(parents=True)
    assert number(volume)["drive"] == "ACME 9A3"
    (volume / "slaves/nvme1n1").mkdir()
    assert disk.drive_of(os.makedev(259, 1), str(tmp_path)) == {}


def test_an_encrypted_drive_is_not_told_its_rate_is_the_cpus(drive, tmp_path):
    _, number = drive
    volume = tmp_path / "devices/virtual/block/dm-0"
    (volume / "slaves/nvme0n1p2").mkdir(parents=True)
    (volume / "dm").mkdir()
    (volume / "dm/uuid").write_text("CRYPT-LUKS2-0123-data\n")
    assert number(volume) == {}


def test_without_a_folder_no_disk_is_measured():
    (record,) = measured("disk")
    assert record["skip"] == "no folder to measure in: give --disk DIR"


def test_a_tenth_of_the_free_space_at_most_is_used(tmp_path):
    there = os.statvfs(tmp_path)
    free = there.f_bavail * there.f_frsize
    assert disk.size_for(str(tmp_path), 1 << 60) <= free // 10
    assert disk.size_for(str(tmp_path), 128 << 20) == 128 << 20


def test_a_full_file_system_is_left_alone():
    with pytest.raises(reporting.SkipError, match=r"/proc has 0 MiB free"):
        disk.size_for("/proc", 1 << 30)


def test_what_fio_complains_of_is_told(fio, tmp_path):
    with open(tmp_path / "short", "w+b") as file:
        run = disk.Fio(fio, file.fileno(), 64 << 20, {"seconds": 1, "jobs": 1})
        with pytest.raises(reporting.MeasurementError, match=r"^fio"):
            run.sample("read")
    with pytest.raises(reporting.MeasurementError, match="does not support direct I/O"):
        disk.read('fio: warning\n{"jobs": [{"error": 22}]}', "read")
    with pytest.raises(reporting.MeasurementError, match="printed no figures: nothing"):
        disk.read("nothing", "read")


# Programs of the host


def test_a_program_over_its_time_is_ended_with_a_word():
    start = time.monotonic()
    with pytest.raises(reporting.MeasurementError, match="sleep did not finish within 1 s"):
        external_tool.run([shutil.which("sleep"), "300"], 1)
    assert time.monotonic() - start < 100


@pytest.mark.parametrize(
    ("shell", "says"),
    [
        ("yes", "sh printed more than 8 MiB"),
        ("yes >&2", "sh printed more than 8 MiB"),
        ("echo first; echo 'no such device' >&2; exit 3", r"sh failed \(3\): no such device"),
        ("kill -9 $$", r"sh failed \(signal SIGKILL\): no message"),
        ("exec >&- 2>&-; exec sleep 300", "sh closed its output but did not finish"),
    ],
)
def test_what_goes_wrong_with_a_program_is_said_in_one_line(shell, says):
    with pytest.raises(reporting.MeasurementError, match=says):
        external_tool.run(["/bin/sh", "-c", shell], 5)


def test_a_program_that_cannot_be_run_is_named(tmp_path):
    with pytest.raises(reporting.MeasurementError, match="missing cannot be run: No such file"):
        external_tool.run([str(tmp_path / "missing")], 5)


def test_output_and_status_of_a_program():
    assert external_tool.run(["/bin/sh", "-c", "printf 'a\\377b'; exit 2"], 5, ok=(0, 2)) == "a\\xffb"
