"""Unpacking of training data by the CPUs, with the real zstd and lz4."""

import os

import pytest

from nodetune.measurements import decompress
from nodetune.measurements.host.report import MeasurementError


class Report:
    def __init__(self):
        self.figures, self.skipped = {}, {}

    def step(self, _text):
        pass

    def result(self, _subject, samples, _unit, metric, **about):
        self.figures[metric] = samples, about

    def skip(self, reason, _subject, metric):
        self.skipped[metric] = reason


@pytest.fixture
def heard(monkeypatch):
    monkeypatch.setattr(decompress, "SECONDS_A_SAMPLE", 0.001)
    monkeypatch.setattr(decompress, "SIZE", 1 << 16)
    return Report()


CPU = min(os.sched_getaffinity(0))


def test_one_core_and_all_cores_unpack_both_formats(heard):
    decompress.measure({"repeats": 2}, heard)
    found = set(heard.figures) | set(heard.skipped)
    assert {"zstd", "lz4"} <= found
    for samples, about in heard.figures.values():
        assert len(samples) == 2
        assert min(samples) > 0
        assert about["ratio"] > 1.5
    assert {about["threads"] for name, (_, about) in heard.figures.items() if not name.endswith("_all")} == {1}


def test_a_missing_library_is_a_skip_with_its_package(heard, monkeypatch):
    monkeypatch.setattr(decompress.ctypes, "CDLL", lambda name: os.stat("/nonexistent/" + name))
    decompress.measure({}, heard)
    assert heard.figures == {}
    assert heard.skipped["zstd"] == "no libzstd.so.1 on this host: install libzstd1 or libzstd"


@pytest.mark.parametrize("name", ["Zstd", "Lz4"])
def test_wrong_data_is_noticed(heard, name):
    data, other = decompress.words(1 << 16), b"x" * (1 << 16)
    try:
        codec = getattr(decompress, name)()
    except OSError:
        pytest.skip("no " + name)
    with pytest.raises(MeasurementError, match="data came back wrong"):
        decompress._sample(codec, codec.pack(other), data, [CPU])
    assert decompress._sample(codec, codec.pack(data), data, [CPU]) > 0
