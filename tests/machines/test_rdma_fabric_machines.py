"""RDMA ports over Soft-RoCE: who reaches whom between three machines of two rails, and each port of one machine by itself.

One port is shut, one slow, one of another MTU; a path is blocked, and one loses long messages. Speeds mean nothing here.
"""

import contextlib
from types import SimpleNamespace

import pytest

from nodetune.hosts.connection_options import ConnectionOptions, SessionOptions
from nodetune.hosts.inventory import selection
from nodetune.remote.live_pool import Ended
from nodetune.verify import figures, reach, remote
from nodetune.verify.evaluate import judge
from nodetune.verify.model import SHORT, Figure
from tests.machines import inventory
from tests.support import verify_records as records

SECONDS = 240.0
RAILS = ("ens2", "ens10")
LOOPBACK = {"size": 4096, "queue_pairs": 1, "repeats": 1}
"""Small messages: some must get through in each second although the processor is emulated."""

DROP = "iptables -{} INPUT -p udp --dport 4791 -s 10.10.0.{} {} -j DROP"


@pytest.fixture(scope="module")
def three(fleet):
    """Machines with a soft-RoCE device on each rail."""
    made = fleet(3)
    for each in made:
        each.ssh("modprobe -a rdma_rxe sch_netem")
        for number, link in enumerate((*RAILS, "ens11")):
            each.ssh(f"rdma link add rxe{number} type rxe netdev {link}")
    yield made
    for each in made:
        fleet.stop(each)


@pytest.fixture(scope="module")
def measured(three, tmp_path_factory):
    """measured(name, options, machines): the figures, and what was not measured."""
    spec = str(inventory.write(tmp_path_factory.mktemp("fabric") / "inventory.yml", three))

    def run(name, options, machines=three):
        names = [each.name for each in machines]
        targets = [target for target in selection.targets(spec) if target.name in names]
        items = [{"name": name, "options": options, "seconds": SECONDS}]
        plan = {"measurements": items, "group": {"hosts": names}}
        found = []
        for target, event in remote.measure(
            targets, lambda _: plan, ConnectionOptions(options=SessionOptions(seconds=SECONDS))
        ):
            assert not isinstance(event, Ended) or event.problem is None
            if not isinstance(event, Ended) and "record" in event:
                found.append(figures.of(target.name, event["record"]))
        made = [each for each in found if isinstance(each, Figure)]
        return SimpleNamespace(figures=made, unmeasured=[each for each in found if not isinstance(each, Figure)])

    return run


@pytest.fixture
def reached(measured):
    return lambda: measured("rdma_reach", {"devices": ["rxe0", "rxe1"]})


@contextlib.contextmanager
def wrong(machine, command, undo):
    machine.ssh(command)
    try:
        yield
    finally:
        machine.ssh(undo)


def of(found, metric):
    return {each.subject: each.value for each in found.figures if each.metric == metric}


def test_every_port_reaches_its_rail_and_rails_that_are_apart_are_no_fault(three, reached):
    found = reached()
    assert of(found, "reached") == {f"{port}/1 {each.name}": 2 for each in three for port in ("rxe0", "rxe1")}
    assert {each.about["fabric"] for each in found.figures} == {"10.10.0.0/24", "10.10.1.0/24"}
    assert reach.findings(found.figures) == []


def test_a_shut_port_a_slow_one_and_one_of_another_mtu_are_each_named(three, reached):
    one, two, other = three
    with (
        wrong(one, "ip link set ens10 down", "ip link set ens10 up"),
        wrong(two, "ip link set ens2 mtu 600", "ip link set ens2 mtu 1500"),
        wrong(other, "tc qdisc add dev ens2 root netem delay 900ms", "tc qdisc del dev ens2 root"),
    ):
        found = reached()
    assert [(each.fault, each.title) for each in reach.findings(found.figures)] == [
        (reach.PORT, f"rxe1/1 of {one.name} is DOWN, but active on other hosts"),
        (reach.MTU, f"rxe0/1 of {two.name} has an MTU of 512 bytes, the others of 10.10.0.0/24 have 1024"),
    ]
    trips = of(found, "round_trip")
    assert max(trips, key=trips.get) == f"rxe0/1 {other.name}"
    machines = dict.fromkeys([each.name for each in three], records.h200())
    slow = [each for each in judge(found.figures, machines) if each.status == SHORT]
    assert {each.figure.subject for each in slow} == {f"rxe1/1 {one.name}", f"rxe0/1 {other.name}"}


@pytest.mark.parametrize(
    ("what", "fault", "title"),
    [
        ("", reach.PATH, "do not reach each other"),
        ("-m length --length 600:", reach.MTU, "reach each other only by short messages"),
    ],
)
def test_a_path_that_drops_messages_is_named_with_its_ends(three, reached, what, fault, title):
    one, two, _ = three
    with wrong(one, DROP.format("A", two.number, what), DROP.format("D", two.number, what)):
        found = reach.findings(reached().figures)
    assert [(each.fault, set(each.hosts)) for each in found] == [(fault, {one.name, two.name})]
    assert found[0].title.endswith(title)


def test_each_port_of_one_machine_reaches_itself(three, measured):
    found = measured("nic_loopback", LOOPBACK, three[:1])
    assert found.unmeasured == []
    assert set(of(found, "nic_loopback")) == {"rxe0/1", "rxe1/1", "rxe2/1"}
    assert set(of(found, "mtu").values()) == {1024}
    assert min(of(found, "nic_loopback").values()) > 0


def test_a_shut_port_and_a_slow_one_of_another_mtu_are_named_without_a_second_machine(three, measured):
    one = three[0]
    with (
        wrong(one, "ip link set ens11 down", "ip link set ens11 up"),
        wrong(one, "ip link set ens10 mtu 320", "ip link set ens10 mtu 1500"),
    ):
        found = measured("nic_loopback", LOOPBACK, [one])
    assert [each.reason for each in found.unmeasured if each.subject == "rxe2/1"] == [
        "rxe2/1 (software) is DOWN, 2 of 3 of its kind are active"
    ]
    speeds = of(found, "nic_loopback")
    assert speeds["rxe1/1"] < speeds["rxe0/1"], "four times as many packets"
    short = [each.figure for each in judge(found.figures, {one.name: records.h200()}) if each.status == SHORT]
    assert ("mtu", "rxe1/1") in [(each.metric, each.subject) for each in short]
    assert "rxe0/1" not in [each.subject for each in short]
