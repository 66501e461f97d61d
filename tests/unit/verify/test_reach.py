"""From which ports reach which to what explains it: a port, a path, two parts, the MTU; rails that are apart are no fault."""

import itertools

import pytest

from nodetune.history.closing import folded
from nodetune.verify import conclude, diagnosis, reach
from nodetune.verify.evaluate import judge
from nodetune.verify.model import SHORT, Figure
from nodetune.verify.run import HostVerification
from tests.support import verify_records as records

SHORT_ONLY = "short"


def mesh(hosts, ports, lost, fabric="fe80:0000:0000:0000", mtu=None):
    """The figures of a run. lost(one, other): whether, or SHORT_ONLY; each one (host, port), asked of each two of different hosts."""
    every = list(itertools.product(hosts, ports))
    subject = lambda each: f"{each[1]} {each[0]}"  # noqa: E731
    return [
        _figure(
            each,
            fabric,
            {
                "unreached": [subject(far) for far in every if _is(lost, each, far, True)],
                "short_only": [subject(far) for far in every if _is(lost, each, far, SHORT_ONLY)],
                "of": sum(far[0] != each[0] for far in every),
                "mtu": (mtu or {}).get(each, 4096),
            },
        )
        for each in every
    ]


def _is(lost, one, other, what):
    return one[0] != other[0] and what in (lost(one, other), lost(other, one))


def _figure(port, fabric, about):
    count = about["of"] - len(about["unreached"]) - len(about["short_only"])
    about = {"state": "ACTIVE", "bdf": "0000:1b:00.0", "fabric": fabric, "rate": 400.0, "layer": "InfiniBand", **about}
    return Figure(port[0], "rdma_reach", "reached", f"{port[1]} {port[0]}", ((count,),), "ports", about=about)


def told(figures):
    return [(each.fault, each.title) for each in reach.findings(figures)]


HOSTS = [f"n{number}" for number in range(1, 9)]
RAILS = ["mlx5_0/1", "mlx5_1/1"]
LEFT = {"n1", "n2", "n3"}


def test_a_fabric_without_a_fault_has_no_finding():
    assert told(mesh(HOSTS, RAILS, lambda *_: False)) == []
    assert told([]) == []


def test_rails_that_are_apart_are_no_fault():
    assert told(mesh(HOSTS, RAILS, lambda one, other: one[1] != other[1])) == []


def test_a_port_that_reaches_none_is_one_finding_and_its_peers_have_none():
    (found,) = reach.findings(mesh(HOSTS, RAILS, lambda one, _: one == ("n4", "mlx5_1/1")))
    assert found.fault == reach.PORT
    assert found.title == (
        "mlx5_1/1 of n4 (0000:1b:00.0) reaches none of 14 ports of fe80:0000:0000:0000, and none reaches it"
    )
    assert (found.host, found.device.name, found.device.address) == ("n4", "mlx5_1/1", "0000:1b:00.0")


def test_a_pair_is_named_and_not_its_ports():
    lost = lambda one, other: (one, other) == (("n2", "mlx5_0/1"), ("n7", "mlx5_0/1"))  # noqa: E731
    (found,) = reach.findings(mesh(HOSTS, RAILS, lost))
    assert (found.fault, found.hosts) == (reach.PATH, ("n2", "n7"))
    assert found.title == "mlx5_0/1 of n2 (0000:1b:00.0) and mlx5_0/1 of n7 (0000:1b:00.0) do not reach each other"


def test_all_that_two_hosts_miss_of_each_other_is_one_path():
    lost = lambda one, other: {one[0], other[0]} == {"n2", "n7"}  # noqa: E731
    assert [each[0] for each in told(mesh(HOSTS, RAILS, lost))] == [reach.PATH]


def test_a_port_that_misses_some_of_many_is_told_with_these():
    lost = lambda one, other: one == ("n2", "mlx5_0/1") and other[0] in ("n5", "n6") and other[1] == "mlx5_0/1"  # noqa: E731
    assert told(mesh(HOSTS, RAILS, lost)) == [
        (reach.PATH, "mlx5_0/1 of n2 (0000:1b:00.0) and mlx5_0/1 of n[5-6] do not reach each other")
    ]


@pytest.mark.parametrize("apart", [False, True])
def test_two_halves_are_one_finding_over_all_rails(apart):
    lost = lambda one, other: (one[0] in LEFT) != (other[0] in LEFT) or (apart and one[1] != other[1])  # noqa: E731
    assert told(mesh(HOSTS, RAILS, lost)) == [
        (reach.SPLIT, "mlx5_0/1, mlx5_1/1 of n[1-3] and mlx5_0/1, mlx5_1/1 of n[4-8] do not reach each other")
    ]


def test_halves_of_one_rail_alone_are_named_with_its_port():
    lost = lambda one, other: one[1] != other[1] or (one[1] == "mlx5_1/1" and (one[0] in LEFT) != (other[0] in LEFT))  # noqa: E731
    assert told(mesh(HOSTS, RAILS, lost)) == [
        (reach.SPLIT, "mlx5_1/1 of n[1-3] and mlx5_1/1 of n[4-8] do not reach each other")
    ]


def test_three_parts_are_three_pairs_of_parts():
    part = {host: number // 3 for number, host in enumerate(HOSTS)}
    found = told(mesh(HOSTS, RAILS[:1], lambda one, other: part[one[0]] != part[other[0]]))
    assert [each[0] for each in found] == [reach.SPLIT] * 3


def test_several_faults_are_told_apart():
    def lost(one, other):
        dead = ("n8", "mlx5_1/1") in (one, other)
        return dead or (one, other) == (("n1", "mlx5_0/1"), ("n2", "mlx5_0/1"))

    assert sorted(each[0] for each in told(mesh(HOSTS, RAILS, lost))) == [reach.PATH, reach.PORT]


def test_of_two_ports_alone_neither_is_blamed():
    assert [each[0] for each in told(mesh(HOSTS[:2], RAILS[:1], lambda *_: True))] == [reach.PATH]


def test_a_fabric_in_which_nothing_arrives_is_one_finding():
    assert told(mesh(HOSTS, RAILS, lambda *_: True)) == [
        (reach.SPLIT, "none of 16 ports of fe80:0000:0000:0000 reaches another")
    ]


def test_an_answer_to_one_of_two_is_enough():
    figures = mesh(HOSTS[:3], RAILS[:1], lambda *_: False)
    figures[0].about["unreached"].append("mlx5_0/1 n2")
    assert told(figures) == []


def test_a_smaller_mtu_is_named_at_its_port():
    figures = mesh(HOSTS, RAILS, lambda *_: False, mtu={("n3", "mlx5_0/1"): 1024})
    assert told(figures) == [
        (
            reach.MTU,
            "mlx5_0/1 of n3 (0000:1b:00.0) has an MTU of 1024 bytes, the others of fe80:0000:0000:0000 have 4096",
        )
    ]


def test_a_path_that_only_short_messages_pass_is_of_the_mtu():
    lost = lambda one, other: SHORT_ONLY if (one[0] in LEFT) != (other[0] in LEFT) else False  # noqa: E731
    ((fault, title),) = told(mesh(HOSTS, RAILS[:1], lost))
    assert fault == reach.MTU
    assert title == "mlx5_0/1 of n[1-3] and mlx5_0/1 of n[4-8] reach each other only by short messages"


def test_a_port_that_is_down_here_and_active_elsewhere_is_named():
    figures = mesh(HOSTS[1:], RAILS[:1], lambda *_: False)
    figures.append(_figure(("n1", "mlx5_0/1"), "", {"state": "DOWN", "of": 7, "unreached": [], "short_only": []}))
    assert told(figures) == [(reach.PORT, "mlx5_0/1 of n1 (0000:1b:00.0) is DOWN, but active on other hosts")]


def test_what_a_host_sends_may_be_nonsense():
    figure = _figure(("n1", "x"), "", {"of": 3, "unreached": [], "short_only": []})
    for key, value in (("unreached", 7), ("short_only", "x"), ("mtu", "x"), ("bdf", 7), ("unreached", ["x n9", 3])):
        figure.about[key] = value
        assert told([figure, *mesh(["n1", "n2"], RAILS, lambda *_: False)]) == []


def test_512_ports_with_a_split_rail_and_a_dead_port_are_explained():
    hosts, ports = [f"gpu{number:02}" for number in range(1, 65)], [f"mlx5_{number}/1" for number in range(8)]

    def lost(one, other):
        if one[1] != other[1]:
            return True
        dead = one == ("gpu07", "mlx5_3/1")
        return dead or (one[1] == "mlx5_5/1" and (one[0] < "gpu33") != (other[0] < "gpu33"))

    found = told(mesh(hosts, ports, lost))
    assert [each[0] for each in found] == [reach.PORT, reach.SPLIT]
    assert found[1][1] == "mlx5_5/1 of gpu[01-32] and mlx5_5/1 of gpu[33-64] do not reach each other"


def verifications(figures):
    machines = dict.fromkeys(HOSTS, records.h200())
    verdicts = judge(figures, machines)
    found = reach.findings(figures)
    return [
        HostVerification(
            host,
            verdicts=tuple(each for each in verdicts if each.figure.host == host),
            findings=tuple(each for each in found if each.host == host),
        )
        for host in HOSTS
    ]


def open_after(*runs):
    sets = [conclude.concluded(verifications(each), at) for at, each in enumerate(runs, 1)]
    return [(each.conclusion.fault, each.conclusion.hosts) for each in folded(sets).open]


def test_a_path_stays_open_until_both_ends_meet_again():
    lost = lambda one, other: {one[0], other[0]} == {"n2", "n7"}  # noqa: E731
    broken, well = mesh(HOSTS, RAILS, lost), mesh(HOSTS, RAILS, lambda *_: False)
    assert open_after(broken) == [(reach.PATH, ("n2", "n7"))]
    apart = [mesh([host, "n1"], RAILS, lambda *_: False) for host in ("n2", "n7")]
    assert open_after(broken, *apart) == [(reach.PATH, ("n2", "n7"))]
    assert open_after(broken, well) == []


def test_a_dead_port_is_one_conclusion_and_closes_when_it_reaches_others():
    dead = mesh(HOSTS, RAILS, lambda one, _: one == ("n4", "mlx5_1/1"))
    assert open_after(dead) == [(reach.PORT, ("n4",))]
    assert open_after(dead, mesh(HOSTS, RAILS, lambda *_: False)) == []


def test_a_port_that_reaches_none_is_below_and_those_that_miss_it_are_not():
    verdicts = judge(mesh(HOSTS, RAILS, lambda one, _: one == ("n4", "mlx5_1/1")), dict.fromkeys(HOSTS, records.h200()))
    short = [each for each in verdicts if each.status == SHORT]
    assert [each.figure.subject for each in short] == ["mlx5_1/1 n4"]
    (named,) = diagnosis.named(short, (), records.h200())
    assert named.suspect.startswith("mlx5_1/1 n4: its cable")
