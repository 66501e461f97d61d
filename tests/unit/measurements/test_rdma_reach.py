"""Who asks whom and when, in which network, and what comes back: ports in memory, with a clock of their own."""

import itertools
import random

import pytest

from nodetune.measurements import rdma_reach
from nodetune.measurements.host import report as reporting
from nodetune.measurements.rdma_reach import Member

ROUND_TRIP = 0.2
"""Seconds: more than one took between emulated machines, with Soft-RoCE and a busy host (0.05 to 0.14). Adapters need some µs."""


def members(hosts, ports, **about):
    known = {"layer": "InfiniBand", "network": "fe80:0000:0000:0000", "state": "ACTIVE", "qpn": 1, "mtu": 4096}
    return [Member(host, f"mlx5_{port}/1", {**known, **about}) for host in range(hosts) for port in range(ports)]


@pytest.mark.parametrize(("hosts", "ports"), [(2, 1), (3, 1), (5, 3), (8, 8)])
def test_each_two_ports_of_two_hosts_meet_once_and_none_is_asked_twice_in_a_round(hosts, ports):
    every = members(hosts, ports)
    asked = rdma_reach.schedule(range(len(every)), every)
    for own, others in asked.items():
        wanted = {other for other, each in enumerate(every) if each.host != every[own].host}
        assert sorted(each for each in others if each is not None) == sorted(wanted)
    for round_ in zip(*asked.values(), strict=True):
        busy = [each for each in round_ if each is not None]
        assert len(busy) == len(set(busy)), "no port is shared"
    assert len(asked[0]) == len(every) - 1 + len(every) % 2


def test_ports_are_asked_within_their_network_and_those_with_one_of_their_own_are_routed():
    every = [
        Member(0, "a/1", {"layer": "Ethernet", "network": "10.0.0.0/24", "qpn": 1}),
        Member(0, "b/1", {"layer": "Ethernet", "network": "10.0.1.0/24", "qpn": 1}),
        Member(0, "c/1", {"layer": "InfiniBand", "network": "fe80:0000:0000:0000", "qpn": 1}),
        Member(0, "d/1", {"layer": "Ethernet", "network": "192.168.7.0/29", "qpn": 1}),
        Member(0, "e/1", {"layer": "Ethernet", "network": "10.0.0.0/24"}),
        Member(1, "a/1", {"layer": "Ethernet", "network": "10.0.0.0/24", "qpn": 1}),
        Member(1, "b/1", {"layer": "Ethernet", "network": "10.0.1.0/24", "qpn": 1}),
        Member(1, "d/1", {"layer": "Ethernet", "network": rdma_reach.ROUTED, "qpn": 1}),
    ]
    assert rdma_reach.grouped(every) == [
        ("10.0.0.0/24", [0, 5]),
        ("10.0.1.0/24", [1, 6]),
        ("routed", [3, 7]),
        ("routed", [2]),
    ]


@pytest.mark.parametrize(
    ("gid", "layer", "bits", "network"),
    [
        ("fe80:0000:0000:0000:506b:4b03:00fa:1234", "InfiniBand", 0, "fe80:0000:0000:0000"),
        ("0000:0000:0000:0000:0000:ffff:0a0a:0115", "Ethernet", 24, "10.10.1.0/24"),
        ("0000:0000:0000:0000:0000:ffff:0a0a:0115", "Ethernet", 31, "routed"),
        ("2001:0db8:0001:0002:506b:4bff:fe00:1234", "Ethernet", 0, "2001:0db8:0001:0002"),
    ],
)
def test_the_network_of_a_port_is_its_prefix(monkeypatch, gid, layer, bits, network):
    monkeypatch.setattr(rdma_reach, "_prefix", lambda _: bits)
    assert rdma_reach.network(gid, layer, "ens2") == network


def test_the_netmask_is_the_kernels():
    assert rdma_reach._prefix("lo") == 8
    assert rdma_reach._prefix("no-such-one") == 32


GOOD = {"layer": "InfiniBand", "state": "ACTIVE", "network": "x", "qpn": 7, "lid": 3, "mtu": 4096, "gid": "0" * 32}


@pytest.mark.parametrize(
    "told",
    [
        None,
        [],
        {"mlx5_0/1": None},
        {"mlx5_0/1": {}},
        *({"mlx5_0/1": {**GOOD, key: value}} for key, value in [("qpn", "x"), ("lid", -1), ("mtu", 1 << 20)]),
        {"mlx5_0/1": {**GOOD, "gid": "zz"}},
        {f"{number}": GOOD for number in range(65)},
    ],
)
def test_what_another_host_offers_is_doubted(told):
    assert rdma_reach.checked({"mlx5_0/1": GOOD}, "n2") == {"mlx5_0/1": GOOD}
    with pytest.raises(reporting.MeasurementError, match="n2: it offers no ports"):
        rdma_reach.checked(told, "n2")


class Net:
    """All ports of a run in memory. lost(from, to, bytes): whether a message is dropped. Its clock moves as messages are handled."""

    def __init__(self, every, lost=lambda *_: False):
        self.now, self.lost, self.arrived = 0.0, lost, {number: [] for number in range(len(every))}
        asked = rdma_reach.schedule(range(len(every)), every)
        of_host = itertools.groupby(range(len(every)), key=lambda number: every[number].host)
        mtus = [each.about["mtu"] for each in every]
        self.meshes = []
        for _, numbers in of_host:
            mine = list(numbers)
            ends = {number: _End(self, number) for number in mine}
            whom = {number: asked[number] for number in mine}
            self.meshes.append(rdma_reach.Mesh(ends, whom, mtus, lambda: self.now))

    def run(self):
        """Let all hosts ask, each one turn in each SLOT. Return what each port reached, and how many turns it took."""
        running, turns = [each.turns() for each in self.meshes], 0
        while running:
            running = [each for each in running if next(each, None) is not None]
            self.now += rdma_reach.SLOT
            turns += 1
            for mesh in self.meshes:
                mesh.answer_until(0)
            for mesh in self.meshes:
                mesh.answer_until(0)
        reached, short = {}, {}
        for mesh in self.meshes:
            reached.update({own: set(answered) for own, answered in mesh.answered.items()})
            short.update(mesh.short)
        return reached, short, turns


class _End:
    def __init__(self, net, number):
        self._net, self._number = net, number

    def send(self, other, data):
        if not self._net.lost(self._number, other, len(data)):
            self._net.arrived[other].append(data)

    def take(self):
        found, self._net.arrived[self._number] = self._net.arrived[self._number], []
        return found


EVERY = members(4, 2)


def others(own, every=EVERY):
    return {number for number, each in enumerate(every) if each.host != every[own].host}


def test_all_answer_in_one_pass_where_nothing_is_lost():
    reached, _, turns = Net(EVERY).run()
    assert all(reached[own] == others(own) for own in reached)
    assert turns <= len(EVERY)


def test_what_is_lost_now_and_then_is_asked_again():
    luck = random.Random(58)
    reached, _, _ = Net(EVERY, lambda *_: luck.random() < 0.1).run()
    assert all(reached[own] == others(own) for own in reached)


def test_a_port_that_hears_and_is_not_heard_reaches_none():
    reached, short, turns = Net(EVERY, lambda one, *_: one == 3).run()
    assert reached[3] == short[3] == set()
    assert all(reached[own] == others(own) - {3} for own in reached if own != 3)
    assert turns * rdma_reach.SLOT <= rdma_reach.TRIES * (rdma_reach.PAUSE + 2 * len(EVERY) * rdma_reach.SLOT)


def test_long_messages_that_are_lost_leave_the_short_ones():
    reached, short, _ = Net(EVERY, lambda one, other, size: {one, other} == {0, 5} and size > 1500).run()
    assert reached[0] == others(0) - {5}
    assert (short[0], short[5]) == ({5}, {0})


def test_the_smaller_mtu_of_two_is_asked_with():
    every = [*members(2, 1), *members(3, 1, mtu=1024)[2:]]
    sizes = set()
    reached, _, _ = Net(every, lambda one, other, size: sizes.add(({one, other} & {2} != set(), size))).run()
    assert all(reached[own] == others(own, every) for own in reached)
    assert sizes == {(False, 4096), (True, 1024)}


@pytest.mark.parametrize("data", [b"", b"x" * 11, rdma_reach.HEAD.pack(7, 4, 0, 1), rdma_reach.HEAD.pack(2, 4, 0, 99)])
def test_strange_messages_are_ignored(data):
    net = Net(EVERY)
    net.arrived[0].append(data)
    reached, _, _ = net.run()
    assert reached[0] == others(0)


def test_a_message_for_a_port_of_the_same_address_in_another_fabric_is_ignored():
    net = Net(EVERY)
    net.arrived[0].append(rdma_reach.HEAD.pack(rdma_reach.ASK, 4, 5, 1).ljust(64, b"\0"))
    net.meshes[0].answer_until(0)
    assert net.arrived[4] == []


@pytest.mark.slow
def test_64_hosts_of_8_ports_have_all_met_within_two_minutes():
    every = members(64, 8)
    dead = 59
    reached, _, turns = Net(every, lambda one, other, _: dead in (one, other)).run()
    assert all(len(reached[own]) >= len(others(own, every)) - 1 for own in reached if own != dead)
    assert reached[dead] == set()
    assert len(rdma_reach.schedule(range(512), every)[0]) * ROUND_TRIP < 120, (
        "though each round took a whole round trip"
    )
    assert turns * rdma_reach.SLOT < 20, "as it is"
