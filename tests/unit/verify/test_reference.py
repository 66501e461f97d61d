"""The shipped tables: right units, right magnitudes, sources, and each entry for exactly what it was measured on."""

from dataclasses import replace

import pytest

from nodetune import data
from nodetune.verify import hardware_limits, reference
from nodetune.verify.model import Limit
from tests.support import verify_records as records

CHIPS = reference._file("chips").data["chips"]
MAGNITUDES = {  # (least, most) that any such figure of a GPU of the last ten years can be, in the unit
    ("gpu_copy", "GB/s"): (8, 450),  # NVLink-C2C, which no copy exceeds
    ("gpu_memory", "GB/s"): (300, 9000),
    ("gpu_p2p", "GB/s"): (20, 1800),
    ("gemm", "TFLOP/s"): (50, 2600),
    ("gpu_load", "TFLOP/s"): (20, 2600),
    ("roofline", "GB/s"): (300, 9000),
    ("nvlink", "%"): (90, 100),
    ("memory", "%"): (10, 50),
    ("gpu_latency", "µs"): (5, 200),
    ("roofline", "TFLOP/s"): (5, 5200),
    ("nccl", "GB/s"): (10, 1000),
    ("disk", "GB/s"): (1, 16),
    ("memory_latency", "%"): (200, 1000),
    ("gpu_copy", "%"): (5, 100),
    ("rdma", "%"): (50, 100),
}


def figure(measurement, metric, subject="GPU0", value=1.0, unit="GB/s", **about):
    (found,) = records.read([records.record(measurement, metric, subject, value, unit, **about)])
    return found


def shipped(found, machine=None):
    """What it is compared with; None where there is nothing."""
    machine = machine or records.h200()
    expected, _ = reference.shipped(found, machine, hardware_limits.of(found, machine)) or (None, None)
    return expected


@pytest.mark.parametrize(
    "entry", reference.entries(), ids=lambda entry: f"{entry.file} {entry.measurement} {entry.metric}"
)
def test_a_figure_has_a_source_a_derivation_and_one_bound(entry):
    assert entry.source
    assert entry.derivation
    assert sum(way not in (None, ()) for way in (entry.at_least, entry.measured, entry.of_limit, entry.of_stated)) == 1
    assert entry.measured is None or 0.5 < entry.factor < 1, "what was measured once is not what all must reach"
    assert "SUSPECT" not in entry.note


@pytest.mark.parametrize(
    "entry",
    [entry for entry in reference.entries() if entry.at_least or entry.measured],
    ids=lambda entry: f"{entry.file} {entry.measurement} {entry.metric} {entry.at_least or entry.measured}",
)
def test_a_figure_is_of_the_magnitude_that_its_unit_says(entry):
    value = entry.at_least or entry.measured
    least, most = MAGNITUDES[entry.measurement, entry.unit]
    assert least <= value <= most
    assert entry.size_from == 0 or 1 << 20 <= entry.size_from <= 64 << 30, "bytes"


@pytest.mark.parametrize(
    "entry", [e for e in reference.entries() if e.gpu], ids=lambda e: f"{e.file} {e.measurement} {e.gpu}"
)
def test_no_shipped_floor_is_above_what_the_chip_can_do(entry):
    assert entry.gpu
    for model in entry.gpu:
        chip = reference.chip(model)
        most = {"gpu_memory": chip.get("memory"), "gemm": chip.get("bf16"), "gpu_p2p": chip.get("nvlink")}
        bound = (entry.at_least or entry.measured) / (2 if entry.metric == "p2p_both" else 1)
        assert bound <= (most.get(entry.measurement) or float("inf"))
        assert bound >= 0.25 * (most.get(entry.measurement) or 0), "off by a power of ten"
        assert not entry.form or entry.form == chip["form"]


@pytest.mark.parametrize(
    "name", [name for entry in reference.entries() for name in entry.gpu] + [c["name"] for c in CHIPS]
)
def test_models_are_called_as_in_the_table_of_gpus(name):
    assert name in {model["name"] for model in data.table("gpus")["gpus"]}
    assert reference.chip(name)


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip["name"])
def test_a_chip_is_described_in_gigabytes_and_teraflops(chip):
    assert chip["form"] in ("SXM", "PCIe", "NVL")
    assert 300 <= chip["memory"] <= 9000
    assert 50 <= chip.get("bf16", 50) <= 3000
    assert 50 <= chip.get("nvlink", 50) <= 1000, "one direction"
    assert chip["verified"] in ("looked-up", "secondary", "from-knowledge")


def test_tolerance_is_of_the_metric_or_else_of_the_measurement():
    assert reference.tolerance("gpu_copy", "h2d", "peers") == 0.05
    assert reference.tolerance("gpu_copy", "both", "peers") == 0.1
    assert reference.tolerance("of_an_older_release", "x", "drift") == 0.01


def test_a_floor_assuming_nvls_spares_a_run_without_it():
    with_nvls = {**records.NCCL, "nvls": True, "size": 16 << 30}
    assert shipped(figure("nccl", "all_reduce", "8 GPUs", **with_nvls)).bound == 431
    without = figure("nccl", "all_reduce", "8 GPUs", **{**with_nvls, "nvls": False})
    assert shipped(without).bound == pytest.approx(0.95 * 366.95)


def test_a_floor_holds_from_its_size_and_the_nearest_counts():
    def bound(size):
        found = shipped(figure("nccl", "all_gather", "8 GPUs", size=size, **records.NCCL))
        return found and found.bound

    assert bound(8 << 20) is None
    assert bound(128 << 20) == pytest.approx(0.95 * 295.88)
    assert bound(1 << 30) == pytest.approx(0.95 * 331.96)
    assert bound(64 << 30) == pytest.approx(0.95 * 357.64)


@pytest.mark.parametrize("other", [{"gpus": 4}, {"nodes": 2}, {"size": 1 << 20}, {"statistic": "average over sizes"}])
def test_a_figure_of_other_conditions_is_not_compared_with_it(other):
    found = figure("nccl", "alltoall", "8 GPUs", **{**records.NCCL, "size": 8 << 30, **other})
    assert shipped(found) is None


def test_another_release_of_nccl_is_given_more_room():
    about = {**records.NCCL, "size": 8 << 30}
    assert shipped(figure("nccl", "alltoall", "8 GPUs", **about)).bound == pytest.approx(0.95 * 343.80)
    older = figure("nccl", "alltoall", "8 GPUs", **{**about, "nccl": "2.27.7"})
    assert shipped(older).bound == pytest.approx(0.9 * 343.52)


def test_another_unit_is_another_figure():
    assert shipped(figure("gpu_memory", "device_copy")).bound > 4000
    assert shipped(figure("gpu_memory", "device_copy", unit="GiB/s")) is None


def test_what_does_not_gate_is_known_as_such():
    cards = replace(records.h200(), model="NVIDIA L40S", fabric="pcie")
    found = figure("nccl", "all_reduce", "8 GPUs", size=1 << 30, **records.NCCL)
    expected, entry = reference.shipped(found, cards, None)
    assert expected.bound == 15
    assert not entry.decides(met=True) and not entry.decides(met=False)


def test_a_gpu_without_figures_is_compared_with_its_pcie_link():
    unknown = replace(records.h200(), model="NVIDIA L40S")
    link = {"most_generation": 4, "most_width": 16}
    found = shipped(figure("gpu_copy", "h2d", local=True), replace(unknown, links={"GPU0": link}))
    assert found.bound == pytest.approx(0.66 * 16 * 1.969)
    assert shipped(figure("gpu_copy", "h2d", local=True), replace(unknown, links={})) is None


def test_tcp_is_compared_with_a_link_that_one_host_can_fill():
    def of(link, virtual=False, **about):
        return shipped(
            figure("tcp", "tcp", "a→b", unit="Gb/s", link=link, **about), replace(records.h200(), virtual=virtual)
        )

    assert of(100.0, adapter=True).bound == pytest.approx(90)
    assert of(25.0).bound == pytest.approx(22.5)
    assert of(400.0, adapter=True) is None
    assert of(100.0, adapter=True, virtual=True) is None, "it may be limited below its link"
    assert of(10.0, adapter=False) is None, "a bridge or veth"
    assert shipped(figure("tcp", "one_stream", "a→b", unit="Gb/s", link=100.0), records.h200()) is None


def test_a_clock_is_compared_with_what_the_hardware_states():
    found = shipped(figure("clock", "clock", "cpu3", 2.0, "GHz", base=2.1, nominal=2.4))
    assert found.bound == pytest.approx(0.97 * 2.1)
    assert shipped(figure("clock", "clock", "cpu3", 2.0, "GHz")) is None


@pytest.mark.parametrize(
    ("name", "about", "value"),
    [
        (("gpu_memory", "device_copy", "GPU0"), {}, 4800),
        (("gpu_copy", "h2d", "GPU0"), {}, 63.0),
        (("gpu_copy", "both", "GPU0"), {}, 126.0),
        (("gpu_p2p", "p2p", "GPU0→GPU1"), {}, 450),
        (("gpu_p2p", "p2p_both", "GPU0↔GPU1"), {}, 900),
        (("nccl", "all_reduce", "8 GPUs"), {"nvls": False}, 450),
        (("nccl", "alltoall", "8 GPUs"), {"nvls": True}, 450),
        (("roofline", "hbm_read", "GPU0"), {}, 4800),
        (("roofline", "fp8", "GPU0"), {"dtype": "fp8", "intensity": 2730.7, "unit": "TFLOP/s"}, 1978.9),
        (("roofline", "decode_1", "GPU0"), {"dtype": "bf16", "intensity": 1.0, "unit": "TFLOP/s"}, 4.8),
        (("roofline", "fp32_large", "GPU0"), {"dtype": "fp32", "intensity": 1666.7, "unit": "TFLOP/s"}, 66.9),
        (("gemm", "bf16", "GPU0"), {"unit": "TFLOP/s"}, 989.4),
        (("disk", "read", "/scratch"), {"drive_link": {"generation": 4, "width": 4}}, 7.88),
    ],
)
def test_the_hardware_sets_a_limit(name, about, value):
    assert hardware_limits.of(figure(*name, **about), records.h200()).value == pytest.approx(value, rel=0.001)


def test_there_is_no_limit_where_none_is_known():
    h200 = records.h200()
    assert hardware_limits.of(figure("nccl", "all_reduce", "8 GPUs", nvls=True), h200) is None, "reduced in the switch"
    assert hardware_limits.of(figure("nccl", "all_reduce", "2 nodes of 8 GPUs", nodes=2), h200) is None
    assert hardware_limits.of(figure("gpu_latency", "launch", unit="µs"), h200) is None
    c2c = replace(h200, links={"GPU0": {"most_generation": 4, "most_width": 1}})
    assert hardware_limits.of(figure("gpu_copy", "h2d"), c2c) is None, "attached by NVLink-C2C, of an unknown rate"
    grace = replace(c2c, model="NVIDIA GH200 480GB")
    assert hardware_limits.of(figure("gpu_copy", "h2d"), grace).what == "NVLink-C2C, 450 GB/s a direction"
    for link in ({"generation": 9, "width": 4}, {"generation": 4, "width": True}, {"generation": "4"}, "x4"):
        assert hardware_limits.of(figure("disk", "read", "/scratch", drive_link=link), h200) is None
    assert hardware_limits.of(figure("roofline", "fp4", unit="TFLOP/s", dtype="fp4"), h200) is None
    assert hardware_limits.of(figure("rdma", "rdma", "mlx5_0/1 a→b", unit="Gb/s", rate=400.0), h200) == Limit(
        400.0, "link, 400 Gb/s"
    )
