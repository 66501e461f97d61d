"""What perftest 4.5 really printed between two machines with soft-RoCE, and what surrounds it: devices, ways to a host."""

import contextlib
import os
import socket
from pathlib import Path

import pytest

from nodetune.measurements import rdma
from nodetune.measurements.host import external_tool, numa, pairs
from nodetune.measurements.host import report as reporting

RECORDINGS = Path(__file__).parents[2] / "data" / "recordings/perftest"


def recorded(name):
    return (RECORDINGS / f"ib_write_bw-4.5-{name}.txt").read_text()


def test_the_figure_is_perftests_average():
    assert rdma.read(recorded("soft-roce")) == 0.022427


def test_missing_traffic_fails_even_if_perftest_succeeds():
    with pytest.raises(reporting.MeasurementError, match="no message of 1048576 bytes got through"):
        rdma.read(recorded("nothing-arrives"))


CONNECTION = b"Couldn't connect to 10.0.0.1:18515\nUnable to open file descriptor for socket connection Unable to init the socket connection\n"
NO_DEVICE = (
    b" Did not detect devices \n If device exists, check if driver is up\n Unable to find the Infiniband/RoCE device\n"
)
COMPLETION = b""" WARNING: BW peak won't be measured in this run.
 Completion with error at client
 Failed status 12: wr_id 0 syndrom 0x81
scnt=128, ccnt=0
 Failed to complete run_iter_bw function successfully
"""


@pytest.mark.parametrize(
    ("printed", "line"),
    [
        (CONNECTION, "Couldn't connect to 10.0.0.1:18515"),
        (NO_DEVICE, "Did not detect devices"),
        (COMPLETION, "Failed status 12: wr_id 0 syndrom 0x81 (the other side does not answer: check the path"),
        (COMPLETION.replace(b"12", b"5"), "Failed status 5: wr_id 0 syndrom 0x81"),
        (b"Port number 1 state is Active\n", "Port number 1 state is Active"),
        (b"", "no message"),
    ],
)
def test_the_line_of_perftest_that_explains_it_is_quoted(printed, line):
    assert rdma.explained(printed).startswith(line)


def test_perftest_itself_is_quoted_where_it_finds_no_adapter():
    program = external_tool.find("ib_write_bw")
    if program is None:
        pytest.skip("no ib_write_bw on this machine: apt install perftest (CI does)")
    with pytest.raises(reporting.MeasurementError, match=r"ib_write_bw failed \(1\): \S") as told:
        external_tool.run([program, "-d", "no_such_device", "127.0.0.1"], 20, telling=rdma.explained)
    assert not str(told.value).endswith("Unable to find the Infiniband/RoCE device")


def test_what_is_measured_over_an_adapter_runs_on_its_numa_node(tmp_path, monkeypatch):
    node, cpus = next(iter(numa.nodes().items()))
    monkeypatch.setattr(rdma, "CLASS", str(tmp_path))
    device(tmp_path, "mlx5_0")
    before = os.sched_getaffinity(0)
    try:
        for number in (str(node), "-1", "4000"):
            (tmp_path / "mlx5_0/device/numa_node").write_text(number)
            rdma.stay_near("mlx5_0/1")
            assert os.sched_getaffinity(0) == (set(cpus) if number == str(node) else before), number
    finally:
        os.sched_setaffinity(0, before)


def device(folder, name, state="4: ACTIVE", hardware=True):
    port = folder / name / "ports/1"
    port.mkdir(parents=True)
    for file, text in (("state", state), ("rate", "400 Gb/sec (4X NDR)"), ("link_layer", "InfiniBand")):
        (port / file).write_text(text + "\n")
    if hardware:
        (folder / name / "device").mkdir()


def test_a_device_without_hardware_has_no_rate_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(rdma, "CLASS", str(tmp_path))
    device(tmp_path, "mlx5_0")
    device(tmp_path, "mlx5_1", state="1: DOWN")
    device(tmp_path, "rxe0", hardware=False)
    found = {name: (about["rate"], about["software"]) for name, about in rdma.ports({}).items()}
    assert found == {"mlx5_0/1": (400.0, False), "rxe0/1": (None, True)}


@pytest.fixture
def door():
    """A port that answers at 127.0.0.1 and nowhere else."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as opened:
        yield opened.getsockname()[1]


def test_the_first_address_that_answers_is_taken(door):
    known = {"ways": [["127.0.0.9", 1.0], ["127.0.0.1", 25.0]], "door": door}
    assert pairs.way_to(known, "h7") == ("127.0.0.1", 25.0)


def test_a_host_that_answers_nowhere_is_told_with_what_was_tried(door):
    known = {"ways": [["127.0.0.9", 1.0], ["127.0.0.8", None]], "door": door}
    with pytest.raises(
        reporting.MeasurementError, match=r"h7 answers at none of its addresses \(127.0.0.9, 127.0.0.8\)"
    ):
        pairs.way_to(known, "h7")


def test_what_a_host_offers_can_be_reached():
    report = reporting.Report("tcp", None, group={"hosts": ["h0", "h1"], "self": 0})
    if not any(name != "lo" for name, _ in pairs.addresses()):
        pytest.skip("this machine has no address but its loopback")
    with pairs.offer(report, {}) as known:
        address, _ = pairs.way_to(known, "h0")
    assert address in {each for _, each in pairs.addresses()}
    with pytest.raises(reporting.MeasurementError, match="none of its addresses"):
        pairs.way_to(known, "h0")


def test_an_address_that_was_given_is_not_doubted():
    report = reporting.Report("tcp", None, group={"hosts": ["h0", "h1"], "self": 0})
    with pairs.offer(report, {"addresses": {"h0": "192.0.2.7"}}) as known:
        assert pairs.way_to(known, "h0")[0] == "192.0.2.7"
