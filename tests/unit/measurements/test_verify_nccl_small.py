"""Small messages by their latency, and a matrix product with a collective: what is planned, counted and told."""

import pytest

from nodetune.measurements import gemm, nccl_overlap
from nodetune.measurements.host.report import MeasurementError
from nodetune.measurements.nccl_support import nccl_cases, nccl_rank, nccl_results

PATH = {
    "via": {"P2P/CUMEM": 2},
    "nics": [],
    "settings": {},
    "channels": 24,
    "nvls": False,
    "link": "NVL",
}


class Heard:
    """Keeps the records of a measurement."""

    hosts, self = ["localhost"], 0

    def __init__(self):
        self.records, self.failures = [], []

    def result(self, subject, samples, unit, better="higher", metric=None, **about):
        record = {"subject": subject, "samples": samples, "unit": unit, "better": better, "metric": metric}
        self.records.append({**record, "about": about})

    def failed(self, reason, subject=None, metric=None):
        self.failures.append(reason)


def asked(**options):
    return nccl_cases.checked({"sizes": [64 << 20], "collectives": ["all_reduce"], **options})


def test_small_messages_come_first_out_of_place_only_if_asked():
    assert not any(case.get("latency") for case in nccl_cases.planned(asked(), 2))
    cases = list(nccl_cases.planned(asked(latency_sizes=[65536, 8]), 2))
    small = [(case["name"], case["size"], case["in_place"]) for case in cases if case.get("latency")]
    assert small == [("all_reduce", 8, False), ("all_reduce", 65536, False), ("alltoall", 65536, False)]
    assert [case.get("latency", False) for case in cases] == [True] * 3 + [False] * 2


def test_an_alltoall_has_no_size_below_16_bytes_for_each_rank():
    cases = list(nccl_cases.planned(asked(latency_sizes=[64, 128], latency_collectives=["alltoall"]), 8))
    assert [case["size"] for case in cases if case.get("latency")] == [128]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"latency_sizes": [0]}, "latency_sizes"),
        ({"latency_sizes": ["8"]}, "latency_sizes"),
        ({"latency_collectives": ["gossip"]}, "gossip"),
    ],
)
def test_senseless_options_are_named(options, words):
    with pytest.raises(MeasurementError, match=words):
        asked(**options)


def told(kind, case, part):
    heard = Heard()
    jobs = [{"rank": 0, "gpu": "GPU0", "check": True, "dtype": "float32"}]
    conditions = {"nccl": "2.28.9", "library": "libnccl.so.2", "gpus": 2, "nodes": 1}
    kind([case], jobs, conditions, "2 GPUs", heard).take(0, {"number": 0, "wrong": 0, "wrong_everywhere": 0, **part})
    return heard


def test_a_small_message_is_told_in_microseconds_less_is_better():
    case = {"name": "all_reduce", "size": 4096, "in_place": False, "latency": True}
    part = {"seconds": [12.5e-6, 12.7e-6], "iterations": 160, "path": PATH, "chosen": {"protocol": "LL"}}
    (record,) = told(nccl_results.Results, case, part).records
    assert (record["metric"], record["unit"], record["better"]) == ("all_reduce_latency", "µs", "lower")
    assert record["samples"] == [12.5, 12.7]
    assert record["about"]["size"] == 4096
    assert record["about"]["protocol"] == "LL"


def test_both_at_once_are_two_figures_with_what_each_does_alone():
    case = {"name": "all_reduce", "size": 1 << 30, "in_place": False}
    part = {"alone": 1 / 300, "seconds": [1 / 200], "gemm_alone": 700.0, "gemm": [600.0], "iterations": 9}
    heard = told(nccl_overlap.Results, case, {**part, "path": PATH, "chosen": {}})
    moved, computed = heard.records
    gb = (1 << 30) / 1e9
    assert (moved["metric"], moved["unit"]) == ("all_reduce_with_gemm", "GB/s")
    assert moved["samples"] == [pytest.approx(200 * gb, abs=0.01)]
    assert moved["about"]["alone"] == pytest.approx(300 * gb, abs=0.01)
    assert (computed["metric"], computed["unit"], computed["samples"]) == ("gemm_with_all_reduce", "TFLOP/s", [600.0])
    assert computed["about"]["alone"] == 700.0
    assert computed["about"]["n"] == gemm.Plan({}).shape.n


def test_wrong_data_with_a_product_are_a_failure_and_no_figure():
    case = {"name": "all_reduce", "size": 1 << 20, "in_place": False}
    heard = told(nccl_overlap.Results, case, {"wrong": 3, "wrong_everywhere": 3, "path": PATH, "chosen": {}})
    assert not heard.records
    assert "3 words" in heard.failures[0]


def test_only_products_that_lie_within_the_collective_count():
    ends = [0.01 * n for n in range(1, 11)]
    slow = [0.1 + 0.02 * n for n in range(1, 6)]
    assert nccl_overlap.within(ends + slow, 0.005, 0.1, 1e12) == pytest.approx(100.0)
    assert nccl_overlap.within(ends + slow, 0.105, 0.2, 1e12) == pytest.approx(50.0)
    with pytest.raises(MeasurementError, match="too short"):
        nccl_overlap.within(ends, 0.011, 0.02, 1e12)


def rank(pace, last):
    made = object.__new__(nccl_rank.Rank)
    made.job = {"warmup": 2, "repeats": 5, "iterations": 20}
    made._pace, made._last = pace, last
    return made


def test_small_cases_do_not_make_large_ones_look_endless():
    """8 bytes in 20 µs would be 16 GiB in 12 hours."""
    assert rank(0.0, 0.05)._expected({"size": 16 << 30}) == 0.05
    one_mib = 40e-6 / (1 << 20)
    assert rank(one_mib, 0.05)._expected({"size": 16 << 30}) < 10.0


def test_the_estimate_grows_with_what_a_call_really_moves():
    pace = 1 / 100e9
    assert rank(pace, 0.0)._expected({"size": 1 << 30}) == pytest.approx(6 * 0.1 + 5 * 0.0107, rel=0.01)
    assert rank(pace, 0.0)._expected({"size": 64 << 30}) > 6 * (64 << 30) / 100e9


def test_more_repeats_than_the_ranks_can_agree_on_are_refused():
    with pytest.raises(MeasurementError, match="repeats 31: 1 to 30"):
        nccl_overlap.measure({"repeats": 31}, Heard())
