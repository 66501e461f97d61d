"""What the controller reads from the file of each measurement, without running it."""

import pytest

from nodetune.remote import payload
from nodetune.verify import catalogue, suites

KEYS = {"peers", "baseline", "drift"}


@pytest.mark.parametrize("name", catalogue.measurements())
def test_a_measurement_states_scope_order_and_tolerance(name):
    each = catalogue.of(name)
    assert each.scope in ("host", "gpus", "collective", "pair")
    assert each.order < catalogue.MeasurementSpec(name).order, f"{name}.py: ORDER is missing"
    assert set(each.suites) <= set(suites.NAMES)
    assert all(set(way) <= {"options", "seconds"} for way in each.suites.values())
    assert "" in each.tolerance and all(set(limits) == KEYS for limits in each.tolerance.values())
    assert (each.all_pairs_seconds is not None) == (each.scope == "pair"), f"{name}.py: ALL_PAIRS_SECONDS is for pairs"


def test_each_file_directly_in_the_folder_is_a_measurement_named_after_it():
    files = {path.stem for path in payload.MEASUREMENTS.glob("*.py")}
    assert files - {"__init__", "__main__", "main"} == set(catalogue.measurements())


FIRST = ("memory", "jitter", "clock", "gpu_latency", "gpu_copy", "gpu_memory", "gpu_p2p", "gemm", "gpu_load", "nccl")


def shipped_first(suite):
    """A suite without what later releases add to it."""
    return [item for item in suites.suite(suite) if item["name"] in FIRST]


def test_a_suite_lists_its_measurements_in_order_with_options():
    assert shipped_first("quick") == [
        {"name": "memory", "options": {}},
        {"name": "gpu_latency", "options": {}},
        {"name": "gpu_copy", "options": {}},
        {"name": "gpu_memory", "options": {}},
        {"name": "gpu_p2p", "options": {"both": False}},
        {"name": "gemm", "options": {}},
        {"name": "nccl", "options": {"collectives": ["all_reduce"], "sizes": [512 << 20, 2 << 30, 16 << 30]}},
    ]
    assert tuple(item["name"] for item in shipped_first("full")) == FIRST
    small = {"latency_sizes": [8, 64, 512, 4096, 16384, 65536]}
    assert shipped_first("nccl") == [{"name": "nccl", "options": small, "seconds": 240}]


NEW = """
import no_such_library
SECONDS = 7.5
SCOPE = "gpus"
ORDER = 55
SUITES = {"full": {"options": {"size": 1}, "seconds": 9}}
TOLERANCE = {"": {"peers": 2, "baseline": 3, "drift": 1}, "fast": {"peers": 4, "baseline": 4, "drift": 1}}
SUSPECT = "{gpu}'s encoder"
def measure(options, report):
    raise SystemExit
"""


@pytest.fixture
def planted(tmp_path, monkeypatch):
    for name in ("gpu_memory", "gpu_p2p", "main"):
        (tmp_path / f"{name}.py").write_bytes((payload.MEASUREMENTS / f"{name}.py").read_bytes())
    monkeypatch.setattr(payload, "MEASUREMENTS", tmp_path)
    return tmp_path


def test_one_new_file_is_a_measurement_in_its_suites(planted):
    (planted / "encoder.py").write_text(NEW)
    assert list(catalogue.measurements()) == ["gpu_memory", "encoder", "gpu_p2p"]
    assert suites.suite("full")[1] == {"name": "encoder", "options": {"size": 1}, "seconds": 9}
    assert suites.SuiteRequest(gpus=(2,), only=("encoder",)).items[0]["options"] == {"size": 1, "gpus": [2]}
    assert catalogue.of("encoder").tolerance_of("fast")["peers"] == 4
    assert catalogue.of("encoder").suspect.format(gpu="GPU1", subject="GPU1") == "GPU1's encoder"


def test_a_constant_that_is_no_literal_is_named(planted):
    (planted / "encoder.py").write_text(NEW.replace("7.5", "60 * 2"))
    with pytest.raises(ValueError, match=r"encoder\.py: SECONDS must be a plain literal"):
        catalogue.measurements()
