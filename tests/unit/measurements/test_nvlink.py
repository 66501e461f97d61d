"""How evenly NVLinks carry what a GPU sends: by NVML's counts of a planted GPU."""
# ruff: noqa: N802 - the names are those of NVML

import json
import types

import pytest

from nodetune.measurements import gpu_p2p, nvlink
from nodetune.measurements.cuda import nvlink_bytes
from nodetune.measurements.host import report
from nodetune.verify import diagnosis
from nodetune.verify.evaluate import judge
from nodetune.verify.model import SHORT, Verdict
from nodetune.verify.suites import SuiteRequest
from tests.support import verify_records as records

KIB_PER_COPY = 1 << 20


class Nvml:
    """Four links; `worth` is the part of its share that each carries, `ends` what is at its other end (GPU: an address)."""

    NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX = 138

    class NVMLError(Exception):
        pass

    def __init__(self, worth, ends=None):
        self.worth, self.ends, self.copies = worth, ends or {}, 0

    def nvmlDeviceGetNvLinkState(self, _handle, link):
        if link >= len(self.worth):
            raise self.NVMLError
        return int(self.worth[link] is not None)

    def nvmlDeviceGetFieldValues(self, _handle, asked):
        values = [self.copies * KIB_PER_COPY * self.worth[link] for _, link in asked]
        return [types.SimpleNamespace(nvmlReturn=0, value=types.SimpleNamespace(ullVal=int(each))) for each in values]

    def nvmlDeviceGetNvLinkRemoteDeviceType(self, _handle, link):
        return 0 if link in self.ends else 2

    def nvmlDeviceGetNvLinkRemotePciInfo(self, _handle, link):
        return types.SimpleNamespace(busId=self.ends[link])


@pytest.fixture
def measured(monkeypatch, capfd):
    """measured(library): the records of two GPUs of which NVML tells this; copies cost nothing."""

    def measured(library):
        ends = [
            types.SimpleNamespace(name=f"GPU{number}", seen=nvlink.gpus.Seen(f"GPU{number}", library))
            for number in range(2)
        ]
        monkeypatch.setattr(nvlink.gpus, "opened", lambda _options, _report: ends)
        monkeypatch.setattr(gpu_p2p, "End", lambda gpu, _options: types.SimpleNamespace(gpu=gpu, size=1, number=0))
        monkeypatch.setattr(gpu_p2p.Pair, "connect", lambda _self: True)
        monkeypatch.setattr(
            gpu_p2p.Pair, "one_way", lambda self: setattr(library, "copies", library.copies + self.copies)
        )
        nvlink.measure({}, report.Report("nvlink", 1))
        said = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
        return [content for kind, content in said if kind == "record"]

    return measured


def test_even_links_carry_all_of_their_share(measured):
    assert {each["subject"]: each["samples"] for each in measured(Nvml([1, 1, 1, 1]))} == {
        "GPU0": [100.0],
        "GPU1": [100.0],
    }


def test_a_link_that_carries_less_than_the_others_is_named(measured):
    (first, _) = measured(Nvml([1, 1, 0.5, 1]))
    assert first["samples"] == [pytest.approx(50 / 0.875)]
    assert (first["about"]["link"], first["about"]["links"]) == (2, 4)
    (slow,) = records.read([{**first, "better": "higher"}])
    machine = records.h200("gpu1")
    found = judge([slow], {"gpu1": machine.__class__(**{**machine.data(), "model": "NVIDIA H100 80GB HBM3"})})
    (named,) = diagnosis.named(found, [], machine)
    assert (named.status, named.suspect) == (SHORT, "GPU0's NVLink 2: its connector, its port of the switch or bridge")


def test_nccl_names_the_link_and_measures_all_gpus_again(measured):
    (first, _) = measured(Nvml([1, 1, 0.5, 1]))
    (slow,) = records.read([{**first, "measurement": "nccl", "better": "higher"}])
    machine = records.h200("gpu1")
    (named,) = diagnosis.named([Verdict(slow, SHORT)], [], machine)
    assert named.suspect == "GPU0's NVLink 2: its connector, its port of the switch or bridge"
    assert "--gpu" not in diagnosis.command(slow, "", SuiteRequest())


def test_what_ranks_sent_counts_from_the_first_look():
    library = Nvml([1, 1, 0.5, 1])
    seen = nvlink.gpus.Seen("GPU0", library)
    library.copies = 3
    before = nvlink_bytes.sent(seen)
    assert nvlink_bytes.least(seen, before) is None, "nothing was sent since"
    library.copies = 5
    found = nvlink_bytes.least(seen, before)
    assert (found["metric"], found["link"], found["samples"]) == ("least_link", 2, [pytest.approx(50 / 0.875)])


def test_links_to_another_gpu_are_compared_among_themselves(measured):
    ends = dict.fromkeys((0, 1), "00000000:18:00.0") | dict.fromkeys((2, 3), "00000000:2a:00.0")
    (first, _) = measured(Nvml([1, 1, 3, 2.4], ends))
    assert (first["samples"], first["about"]["link"]) == ([pytest.approx(2.4 / 2.7 * 100)], 3)


@pytest.mark.parametrize(
    ("worth", "why"),
    [
        ([], "it has no active NVLink"),
        ([1, None], "its driver does not count the bytes of each NVLink"),
        ([0, 0], "over no NVLink"),
    ],
)
def test_without_links_or_counts_nothing_is_measured(measured, worth, why):
    found = measured(Nvml(worth))
    assert {each["subject"] for each in found} == {"GPU0", "GPU1"}
    assert all(why in each["skip"] for each in found)
