"""What the page cache and small files do, measured for real in a folder of this machine."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nodetune.measurements import disk, disk_buffered, disk_files
from nodetune.measurements.host import report as reporting
from nodetune.verify.suites import SuiteRequest

SIZE = 64 << 20


def measured(name, **options):
    """The records of one measurement, in a process of its own as ever."""
    command = [sys.executable, "-m", "nodetune.measurements", name, json.dumps(options), "120"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {record.get("metric", ""): record for record in map(json.loads, done.stdout.splitlines())}


@pytest.fixture
def folder(tmp_path):
    """A folder whose files can leave the page cache."""
    if disk.mount_of(str(tmp_path))["file_system"] in ("tmpfs", "ramfs"):
        pytest.skip("the temporary folder of this machine is memory")
    return tmp_path


# Through the page cache


def test_writing_fsync_and_reading_are_three_figures_of_one_file(folder):
    found = measured("disk_buffered", dir=str(folder), size=SIZE, repeats=2)
    assert list(found) == ["write", "write_fsync", "read"]
    for record in found.values():
        assert record["unit"] == "GB/s"
        assert record["about"]["size"] == SIZE
        assert record["about"]["direct"] is False
        assert record["about"]["file_system"] == disk.mount_of(str(folder))["file_system"]
        assert {"dirty_ratio", "dirty_bytes"} & set(record["about"])
    pairs = zip(found["write"]["samples"], found["write_fsync"]["samples"], strict=True)
    assert all(alone > synced > 0 for alone, synced in pairs), "fsync takes time of its own"
    assert os.listdir(folder) == []


def test_a_file_leaves_the_cache_before_it_is_read(folder):
    handle = disk.nameless(str(folder))
    disk_buffered.write(handle, SIZE)
    assert disk_buffered.cached(handle, SIZE) == 1.0
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    assert disk_buffered.cached(handle, SIZE) < disk_buffered.MAX_CACHED
    disk_buffered.read(handle, SIZE)
    assert disk_buffered.cached(handle, SIZE) > 1 - disk_buffered.MAX_CACHED, "it was read through the page cache"
    os.close(handle)


def test_what_is_read_from_memory_is_not_called_a_disk():
    if disk.mount_of("/dev/shm")["file_system"] != "tmpfs":
        pytest.skip("/dev/shm is no tmpfs here")
    found = measured("disk_buffered", dir="/dev/shm", size=SIZE, repeats=1)
    assert found["read"]["skip"].startswith("tmpfs keeps 100% of the file in memory")
    assert found["write"]["samples"]


def test_a_file_that_ends_early_is_an_error(tmp_path):
    handle = disk.nameless(str(tmp_path))
    disk_buffered.write(handle, disk.BLOCK)
    with pytest.raises(reporting.MeasurementError, match=f"{disk.BLOCK} bytes of the file could not be read again"):
        disk_buffered.read(handle, 2 * disk.BLOCK)
    os.close(handle)


class Clock:
    """A report of which only the time left is asked."""

    def __init__(self, left):
        self.left = lambda: left


def test_repeats_end_when_the_time_left_is_short():
    assert disk_buffered.repeated(Clock(1e9), 3, lambda: 1) == [1, 1, 1]
    assert disk_buffered.repeated(Clock(0.0), 3, lambda: 1) == [1], "at least one"


def test_a_device_without_a_known_read_ahead_has_none():
    assert "read_ahead_kb" not in disk_buffered.settings(os.makedev(4095, 77))


# Small files


def test_small_files_are_made_found_read_and_removed(tmp_path):
    found = measured("disk_files", dir=str(tmp_path), count=50, repeats=2)
    assert list(found) == ["create", "create_fsync", "stat", "open", "unlink"]
    for record in found.values():
        assert record["unit"] == "k/s"
        assert len(record["samples"]) == 2
        assert min(record["samples"]) > 0
        assert record["about"]["files"] == 50
    assert os.listdir(tmp_path) == []


def test_a_slow_server_ends_each_part_and_leaves_no_file(tmp_path):
    found = measured("disk_files", dir=str(tmp_path), count=100_000, repeats=1, seconds=0.01)
    assert 0 < found["stat"]["about"]["files"] < 100_000
    assert os.listdir(tmp_path) == []


def gone():
    """The id of a process that has ended."""
    return subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)


def left(folder, pid, *names):
    """What a killed measurement leaves."""
    there = folder / disk_files.NAME.format("gpu1", pid)
    there.mkdir()
    for name in names:
        (there / name).write_text("x")
    return there


def test_what_a_killed_measurement_left_is_removed(tmp_path):
    ended = int(gone().stdout)
    old, running = left(tmp_path, ended, "1", "s2"), left(tmp_path, os.getpid(), "1")
    of_another_host = tmp_path / disk_files.NAME.format("gpu2", ended)
    of_another_host.mkdir()
    disk_files.sweep(str(tmp_path), disk_files.NAME.format("gpu1", ""), disk_files.OURS)
    assert not old.exists()
    assert running.exists()
    assert of_another_host.exists()


def test_files_that_are_not_ours_are_never_removed(tmp_path):
    ended = int(gone().stdout)
    there = left(tmp_path, ended, "precious.txt", "1")
    disk_files.sweep(str(tmp_path), disk_files.NAME.format("gpu1", ""), disk_files.OURS)
    assert os.listdir(there) == ["precious.txt"]


def test_a_link_in_the_place_of_the_folder_is_not_followed(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/1").write_text("keep")
    (tmp_path / disk_files.NAME.format("gpu1", int(gone().stdout))).symlink_to(tmp_path / "data")
    disk_files.sweep(str(tmp_path), disk_files.NAME.format("gpu1", ""), disk_files.OURS)
    assert (tmp_path / "data/1").read_text() == "keep"


def test_a_killed_measurement_is_cleaned_up_by_the_next(tmp_path):
    code = "import sys; from nodetune.measurements import disk_files; from nodetune.measurements.host import report; disk_files.measure({'dir': sys.argv[1], 'count': 10**6, 'seconds': 600}, report.Report('x', 1))"
    running = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while not list(Path(tmp_path).glob(".nodetune-files-*/3")) and time.monotonic() < end:
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    running.wait()
    assert len(os.listdir(tmp_path)) == 1
    measured("disk_files", dir=str(tmp_path), count=5, repeats=1)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["disk_buffered", "disk_files"])
def test_without_a_folder_nothing_is_measured(name, tmp_path):
    assert measured(name)[""]["skip"] == "no folder to measure in: give --disk DIR"
    assert "is not a folder" in measured(name, dir=str(tmp_path / "missing"))[""]["failed"]


# What --disk means


def test_a_folder_is_measured_in_every_way_or_as_named():
    every = SuiteRequest(disk="/scratch")
    chosen = {item["name"]: item["options"] for item in every.items if item["name"].startswith("disk")}
    assert chosen == {name: {"dir": "/scratch"} for name in ("disk", "disk_buffered", "disk_files")}
    assert every.words.count("--disk") == 1
    alone = SuiteRequest(disk="/scratch", only=("disk_files",))
    assert [item["name"] for item in alone.items] == ["disk_files"]
    assert alone.words_for("disk_files", False) == ["--only", "disk_files", "--disk", "/scratch"]
