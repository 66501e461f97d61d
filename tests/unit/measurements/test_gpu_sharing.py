"""Processes that share a GPU, and the instances of one: measured against the substitute libcuda, NVML planted."""

import json

import pytest

from nodetune.facts.machine import Machine
from nodetune.measurements import gpu_sharing, mig
from nodetune.measurements.cuda import gpu_busy, gpu_processes, gpus
from nodetune.measurements.host import report
from nodetune.verify import baseline, diagnosis
from nodetune.verify.evaluate import judge
from nodetune.verify.figures import read
from nodetune.verify.model import PASS, SHORT
from nodetune.verify.suites import SuiteRequest

SMALL = {"n": 32, "size": 16 << 20, "seconds": 0.15}


class Nvml:
    """GPUs with these instances: names by GPU; MIG is off on a GPU that has None."""

    class NVMLError(Exception):
        pass

    def __init__(self, *instances):
        self.instances = instances

    def nvmlDeviceGetMigMode(self, handle):  # noqa: N802 - the names are those of NVML
        return [int(self.instances[handle] is not None), 0]

    def nvmlDeviceGetMaxMigDeviceCount(self, _handle):  # noqa: N802
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle, index):  # noqa: N802
        if index >= len(self.instances[handle]):
            raise self.NVMLError
        return handle, index

    def nvmlDeviceGetUUID(self, handle):  # noqa: N802
        return f"MIG-{handle}"

    def nvmlDeviceGetName(self, handle):  # noqa: N802
        return f"NVIDIA H100 80GB HBM3 MIG {self.instances[handle[0]][handle[1]]}".encode()


@pytest.fixture
def run(monkeypatch, capfd, libcuda):
    """run(measurement, NVML, options): its records."""
    monkeypatch.setattr(gpu_busy, "WINDOW_SECONDS", 1e-5)
    monkeypatch.setattr(gpu_busy, "PIECE_SECONDS", 1e-5)
    monkeypatch.setattr(gpu_processes, "SETTLE", 0.0)

    def run(measurement, library, **options):
        seen = {f"{n}": gpus.Seen(f"GPU{n}", library, n) for n in range(len(library.instances))}
        monkeypatch.setattr(gpus, "known", lambda _report: seen)
        capfd.readouterr()
        asked = {**SMALL, "libcuda": libcuda, "library": libcuda, **options}
        measurement.measure(asked, report.Report(measurement.__name__.rpartition(".")[2], 1, seconds=100.0))
        said = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
        return [content for kind, content in said if kind == "record"]

    return run


def test_each_instance_is_measured_alone_and_with_its_neighbours(run):
    records = run(mig, Nvml(["1g.10gb", "3g.40gb"], None))
    subjects = {"GPU0 1g.10gb #0", "GPU0 3g.40gb #1"}
    metrics = ("copy", "copy_busy", "bf16", "bf16_busy")
    assert {(each["subject"], each["metric"]) for each in records} == {(s, m) for s in subjects for m in metrics}
    copies = [sample for each in records if each["metric"] == "copy" for sample in each["samples"]]
    assert copies == pytest.approx([2 * 2133.0] * len(copies), rel=1e-3), (
        "read and written, at the rate of the substitute"
    )


def test_equal_instances_are_peers_and_the_slow_one_is_short():
    machine = Machine(model="NVIDIA H100 80GB HBM3", gpus=1)
    values = {"1g.10gb #0": 300, "1g.10gb #1": 200, "1g.10gb #2": 301, "1g.10gb #3": 299, "3g.40gb #4": 900}
    found = [
        read(
            "gpu1",
            {"measurement": "mig", "metric": "copy", "subject": f"GPU0 {name}", "samples": [value], "unit": "GB/s"},
        )
        for name, value in values.items()
    ]
    verdicts = {each.figure.subject: each for each in judge(found, {"gpu1": machine})}
    assert {name: each.status for name, each in verdicts.items() if each.status in (PASS, SHORT)} == {
        "GPU0 1g.10gb #0": PASS,
        "GPU0 1g.10gb #1": SHORT,
        "GPU0 1g.10gb #2": PASS,
        "GPU0 1g.10gb #3": PASS,
    }
    assert "equal instances" in verdicts["GPU0 1g.10gb #1"].expected.provenance
    assert "--gpu 0" in diagnosis.command(found[1], "", SuiteRequest())
    assert baseline.subject(found[0], machine) == "instance 1g.10gb"


@pytest.mark.parametrize(
    ("instances", "options", "says"),
    [([None], {}, "no GPU is in MIG mode"), ([[], None], {}, "no instance"), ([None], {"gpus": [4]}, "GPU4 not found")],
)
def test_a_gpu_without_instances_says_so(run, instances, options, says):
    try:
        found = run(mig, Nvml(*instances), **options)
    except (report.SkipError, report.MeasurementError) as reason:
        found = [{"skip": str(reason)}]
    assert [says in each["skip"] for each in found] == [True]


def test_processes_that_do_not_wait_do_four_times_as_much(run, monkeypatch, tmp_path):
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
    (tmp_path / "control").touch()
    total, least = run(gpu_sharing, Nvml(None))
    assert (total["metric"], total["samples"]) == ("total", [pytest.approx(400, rel=1e-3)]), (
        "the substitute never waits"
    )
    assert (least["metric"], least["samples"]) == ("least", [pytest.approx(100, rel=1e-3)])
    assert total["about"]["mps"] is True
    assert total["about"]["processes"] == 4


def test_a_process_that_gets_less_than_its_share_is_seen(run, monkeypatch):
    rates = {("products", False): [[100.0]], ("products", True): [[30.0], [30.0], [30.0], [10.0]]}
    monkeypatch.setattr(gpu_processes, "measured", lambda *_: rates)
    total, least = run(gpu_sharing, Nvml(None))
    assert (total["samples"], least["samples"]) == ([100.0], [40.0])


def test_a_wrong_copy_fails_its_gpu_with_the_name_of_the_instance(run, monkeypatch):
    monkeypatch.setenv("STAND_IN_FAULT", "lost")
    (failed,) = run(mig, Nvml(["1g.10gb"]))
    assert failed["subject"] == "GPU0"
    assert "GPU0 1g.10gb #0" in failed["failed"]
