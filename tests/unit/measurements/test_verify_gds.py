"""gdsio's lines as people published them, and a program that prints them in its place: no such storage is here."""

import json
import os

import pytest

from nodetune.measurements import disk, disk_files, disk_gds
from nodetune.measurements.host import external_tool
from nodetune.measurements.host import report as reporting
from nodetune.verify.suites import SuiteRequest

# https://github.com/NVIDIA/gds-nvidia-fs/issues/78, gdsio of CUDA 13
LINE = "IoType: WRITE XferType: GPUD Threads: 1 DataSetSize: 1024/1024(KiB) IOSize: 4(KiB) Throughput: 0.013104 GiB/sec, Avg_Latency: 264.007812 usecs ops: 256 total_time 0.074524 secs\n"
# https://github.com/NVIDIA/gds-nvidia-fs/issues/70: what it says where compatibility mode is forbidden and needed
REFUSED = "file register error: GPUDirect Storage not supported on current file filename:/root/gds_test/gdsio.0\n"


def test_the_figure_is_gdsios_throughput_in_gigabytes():
    assert disk_gds.read(LINE) == pytest.approx(0.013104 * 1.073741824)
    assert disk_gds.read(LINE.replace("GiB/sec", "MiB/sec")) == pytest.approx(0.013104 * 1.048576e-3)
    assert disk_gds.read(LINE.replace("GPUD", "CPU_GPU")) == disk_gds.read(LINE)


@pytest.mark.parametrize(
    ("printed", "says"),
    [
        (REFUSED, "file register error: GPUDirect Storage not supported on current file"),
        (LINE.replace("0.013104", "0.000000"), "gdsio printed no figures: IoType"),
        ("", "gdsio printed no figures: no message"),
    ],
)
def test_without_a_figure_it_says_why(printed, says):
    with pytest.raises(reporting.MeasurementError, match=says):
        disk_gds.read(printed)


STAND_IN = """#!/bin/sh
echo "$CUFILE_ALLOW_COMPAT_MODE $*" >> {seen}
touch "$2/gdsio.0" cufile.log
[ "$CUFILE_ALLOW_COMPAT_MODE" = false ] && {{ echo '{refused}'; exit {status}; }}
printf '%s' '{line}'
"""


@pytest.fixture
def gdsio(tmp_path, monkeypatch):
    """gdsio(status): puts it there; the exit status where compatibility mode is forbidden, or None where it is not needed."""

    def put(status):
        program = tmp_path / "gdsio"
        text = STAND_IN.format(seen=tmp_path / "seen", refused=REFUSED.strip(), line=LINE.strip(), status=status)
        program.write_text(text if status is not None else text.replace("= false ]", "= never ]"))
        program.chmod(0o755)
        find = external_tool.find
        monkeypatch.setattr(external_tool, "find", lambda name: str(program) if name == "gdsio" else find(name))
        return tmp_path / "seen"

    return put


def measured(folder, tmp_path):
    with (tmp_path / "told").open("wb") as out:
        options = {"dir": str(folder), "gpus": [1], "repeats": 2}
        disk_gds.measure(options, reporting.Report("disk_gds", out.fileno()))
    told = [json.loads(line) for line in (tmp_path / "told").read_text().splitlines()]
    return {each["metric"]: each for kind, each in told if kind == "record"}, [x for kind, x in told if kind == "note"]


@pytest.mark.parametrize("status", [0, 1])
def test_compatibility_mode_is_noted_and_kept_apart(gdsio, tmp_path, status):
    gdsio(status)
    (tmp_path / "data").mkdir()
    found, (note,) = measured(tmp_path / "data", tmp_path)
    assert note.startswith("GPU1: cuFile works in compatibility mode, through the CPU: ")
    assert "GPUDirect Storage not supported on current file" in note
    assert [found[each]["about"]["compatibility"] for each in ("write", "read", "read_by_cpu")] == [True, True, None]
    assert os.listdir(tmp_path / "data") == []


def test_the_direct_path_is_measured_without_compatibility(gdsio, tmp_path):
    seen = gdsio(None)
    (tmp_path / "data").mkdir()
    found, notes = measured(tmp_path / "data", tmp_path)
    assert notes == []
    assert {each["subject"] for each in found.values()} == {"GPU1"}
    assert found["read"]["about"]["compatibility"] is False
    assert found["read"]["about"]["file_system"] == disk.mount_of(str(tmp_path))["file_system"]
    calls = seen.read_text().splitlines()
    assert len(calls) == 7
    assert all(line.startswith("false -D ") and " -d 1 -w 8 -s " in line for line in calls)
    assert [line.split("-x ")[1] for line in calls[:1] + calls[1::2]] == ["0 -I 1", "0 -I 1", "0 -I 0", "2 -I 0"]


def test_what_a_killed_one_left_is_removed(tmp_path):
    left = tmp_path / disk_gds.NAME.format("h", 2**22 + 1)
    left.mkdir()
    for name in ("gdsio.0", "gdsio.17", "cufile.log"):
        (left / name).write_text("x")
    disk_files.sweep(str(tmp_path), disk_gds.NAME.format("h", ""), disk_gds.OURS)
    assert not left.exists()


def test_without_gdsio_or_a_gpu_it_is_skipped(tmp_path, monkeypatch):
    monkeypatch.setattr(external_tool, "find", lambda name: None)
    monkeypatch.setattr(disk_gds, "PLACES", ())
    with pytest.raises(reporting.SkipError, match="gds-tools"):
        disk_gds.measure({"dir": str(tmp_path)}, None)
    monkeypatch.setattr(disk_gds.files, "names", lambda _: [])
    with pytest.raises(reporting.SkipError, match="no NVIDIA GPU"):
        disk_gds.numbers({})


def test_it_is_measured_only_when_it_is_named():
    assert "disk_gds" not in [item["name"] for item in SuiteRequest(disk="/scratch").items]
    (item,) = SuiteRequest(disk="/scratch", only=("disk_gds",), gpus=(3,)).items
    assert item["options"] == {"dir": "/scratch", "gpus": [3]}
