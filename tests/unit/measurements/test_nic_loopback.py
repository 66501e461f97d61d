"""Each port to itself: what runs, which ports that are down are faults, and what bounds the figure. perftest is a substitute."""

import json
import os

import pytest

from nodetune.facts import machine
from nodetune.measurements import nic_loopback, rdma, rdma_gpu
from nodetune.measurements.host import external_tool, pairs, pcie
from nodetune.measurements.host import report as reporting
from nodetune.verify import hardware_limits, reference
from nodetune.verify.evaluate import judge
from nodetune.verify.model import PASS, SHORT, Figure
from tests.support import verify_records as records
from tests.unit.measurements.test_verify_perftest import device, recorded
from tests.unit.measurements.test_verify_rdma_gpu import GPUS, TREE, server  # noqa: F401

SUBSTITUTE = """#!/bin/sh
case "$*" in *--help*) echo '{help}'; exit 1;; *127.0.0.1) echo "$*" >> {seen}; sed 's/0.022427/{gbits}/' {table};; *) sleep 60;; esac
"""


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """measured(gbits, help): ({(metric, subject): record}, the clients' words)."""
    monkeypatch.setattr(pairs, "listening", lambda: set(range(1 << 16)))

    def run(gbits="390.0", words="", **options):
        program, seen = tmp_path / "ib_write_bw", tmp_path / "seen"
        (tmp_path / "table").write_text(recorded("soft-roce"))
        program.write_text(SUBSTITUTE.format(help=words, seen=seen, gbits=gbits, table=tmp_path / "table"))
        program.chmod(0o755)
        monkeypatch.setattr(external_tool, "need", lambda *_: str(program))
        before = os.sched_getaffinity(0)
        try:
            with (tmp_path / "told").open("wb") as out:
                nic_loopback.measure(
                    {"repeats": 1, **options}, reporting.Report("nic_loopback", out.fileno(), seconds=60)
                )
        finally:
            os.sched_setaffinity(0, before)
        told = [json.loads(line) for line in (tmp_path / "told").read_text().splitlines()]
        found = [each for kind, each in told if kind == "record"]
        return {(each.get("metric"), each["subject"]): each for each in found}, seen.read_text().splitlines()

    return run


def test_each_port_writes_to_itself_and_gpu_memory_only_where_perftest_can(server, measured):  # noqa: F811
    found, calls = measured()
    assert {subject for metric, subject in found if metric == "nic_loopback"} == {
        "mlx5_0/1",
        "mlx5_1/1",
        "mlx5_2/1",
    }
    assert [line.split()[1] for line in calls] == ["mlx5_0", "mlx5_1", "mlx5_2"]
    assert all(line.endswith(" 127.0.0.1") for line in calls)
    assert not any("cuda" in line for line in calls)


def test_an_adapter_writes_to_the_memory_of_the_gpus_near_to_it(server, measured, monkeypatch):  # noqa: F811
    monkeypatch.setattr(rdma, "every_port", _hardware(rdma.every_port))
    found, calls = measured(words="--use_cuda=<cuda device id>")
    assert {subject for metric, subject in found if metric == "gpu"} == {
        "GPU0 mlx5_0/1",
        "GPU1 mlx5_0/1",
        "GPU2 mlx5_1/1",
        "GPU3 mlx5_2/1",
    }
    assert calls[-1].endswith("--use_cuda=3 --use_cuda_dmabuf 127.0.0.1")
    assert found["gpu", "GPU0 mlx5_0/1"]["about"]["bdf"] == "0000:1a:00.0"
    assert rdma_gpu.gpus() == GPUS
    assert len(TREE) == 7


def _hardware(before):
    return lambda options: {name: dict(about, software=False) for name, about in before(options).items()}


def ports(folder, monkeypatch, *states):
    monkeypatch.setattr(rdma, "CLASS", str(folder / "class"))
    (folder / "class").mkdir()
    for number, state in enumerate(states):
        device(folder / "class", f"mlx5_{number}", state=state)


def test_a_port_that_is_down_fails_where_most_of_its_kind_are_active(tmp_path, monkeypatch, measured):
    ports(tmp_path, monkeypatch, "4: ACTIVE", "1: DOWN", "4: ACTIVE")
    found, _ = measured()
    assert found[None, "mlx5_1/1"]["failed"].startswith("mlx5_1/1 (")
    assert found[None, "mlx5_1/1"]["failed"].endswith(" is DOWN, 2 of 3 of its kind are active")


def test_a_port_that_is_down_as_half_of_its_kind_are_is_named_and_no_fault(tmp_path, monkeypatch, measured):
    ports(tmp_path, monkeypatch, "4: ACTIVE", "1: DOWN")
    found, _ = measured()
    assert "is DOWN" in found[None, "mlx5_1/1"]["skip"]


def test_a_loopback_that_fails_is_named_with_its_device_and_the_others_go_on(tmp_path, monkeypatch, measured):
    ports(tmp_path, monkeypatch, "4: ACTIVE", "4: ACTIVE")
    found, _ = measured(gbits="0.00")
    for name in ("mlx5_0/1", "mlx5_1/1"):
        assert found["nic_loopback", name]["failed"].startswith(f"{name} (")
        assert "no message of" in found["nic_loopback", name]["failed"]


def test_a_host_without_an_adapter_is_skipped(tmp_path, monkeypatch, measured):
    monkeypatch.setattr(rdma, "CLASS", str(tmp_path / "none"))
    with pytest.raises(reporting.SkipError, match="no RDMA adapter"):
        measured()


@pytest.mark.parametrize(
    ("rates", "usual"),
    [
        ([400, 400, 400], {}),
        ([400, 100, 400], {"p1": 400}),
        ([400, 100], {"p1": 400}),
        ([400, 400, 400, 100, 100], {}),
        ([None, None], {}),
    ],
)
def test_a_port_that_alone_has_a_lower_rate_is_held_to_that_of_its_kind(rates, usual):
    every = {f"p{number}": {"rate": rate, "kind": "MT4129", "state": rdma.ACTIVE} for number, rate in enumerate(rates)}
    assert nic_loopback.usual_rates(every) == usual


def figure(value, subject="mlx5_0/1", metric="nic_loopback", unit="Gb/s", **about):
    about = {"layer": "InfiniBand", "bdf": "0000:1a:00.0", "software": False, **about}
    return Figure("gpu1", "nic_loopback", metric, subject, ((value,),), unit, about=about)


@pytest.mark.parametrize(
    ("rate", "link", "floor"),
    [
        (200.0, (4, 16), 180),  # Azure's floor of this adapter in this slot
        (400.0, (5, 16), 360),
        (400.0, None, 360),
        (200.0, (3, 16), 94),  # the link carries less than the port
        (200.0, (4, 8), 94),
    ],
)
def test_the_floor_is_of_the_port_or_of_what_its_pcie_link_carries(rate, link, floor):
    about = {"pcie": {"generation": link[0], "width": link[1]} if link else None}
    made = figure(1.0, rate=rate, **about)
    expected, _ = reference.shipped(made, machine.UNKNOWN, hardware_limits.of(made, machine.UNKNOWN))
    assert expected.bound == pytest.approx(floor, abs=1)


def test_software_has_no_floor():
    made = figure(1.0, rate=None, software=True)
    assert reference.shipped(made, machine.UNKNOWN, hardware_limits.of(made, machine.UNKNOWN)) is None


def test_a_port_that_came_up_slower_than_its_kind_is_below_and_named_with_its_address():
    (verdict,) = judge([figure(98.0, rate=100.0, usual_rate=400.0)], {"gpu1": records.h200()})
    assert (verdict.status, verdict.limit.value) == (SHORT, 400.0)


@pytest.mark.parametrize(
    ("values", "metric", "unit"),
    [((0.52, 0.2, 0.53, 0.5), "nic_loopback", "Gb/s"), ((1024, 512, 1024), "mtu", "bytes")],
)
def test_a_port_unlike_its_peers_is_below_without_a_floor(values, metric, unit):
    every = [figure(value, f"rxe{number}/1", metric, unit, rate=None) for number, value in enumerate(values)]
    verdicts = judge(every, {"gpu1": records.h200()})
    assert [each.figure.subject for each in verdicts if each.status == SHORT] == ["rxe1/1"]
    equal = judge(
        [figure(1024, f"rxe{number}/1", "mtu", "bytes", rate=None) for number in range(4)], {"gpu1": records.h200()}
    )
    assert {each.status for each in equal} == {PASS}


def test_the_link_is_the_best_that_card_and_slot_support(tmp_path):
    card = tmp_path / "slot/card"
    card.mkdir(parents=True)
    assert pcie.link(str(card)) is None
    for folder, speed, width in ((card, "32.0 GT/s PCIe", 16), (card.parent, "16.0 GT/s PCIe", 8)):
        (folder / "max_link_speed").write_text(speed + "\n")
        (folder / "max_link_width").write_text(f"{width}\n")
    assert pcie.link(str(card)) == {"generation": 4, "width": 8}
