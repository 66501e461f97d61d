"""What a verify and a search prove: of which hosts, devices and links a fault closes."""

import pytest

from nodetune.history.closing import folded
from nodetune.verify import conclude, findings
from nodetune.verify.find_slow import conclude as searched
from nodetune.verify.find_slow.model import Culprit, Fleet, Part, SearchResult
from nodetune.verify.find_slow.run import SlowSearch
from nodetune.verify.model import FAILED, PASS, SHORT, Figure, Unmeasured, Verdict
from nodetune.verify.reference import Expectation
from nodetune.verify.run import HostVerification

TARGET = Expectation("target", 100.0, "a data sheet")


def figure(host, measurement, subject, value):
    made = Figure(host, measurement, "bandwidth", subject, ((value,),), "GB/s", "higher", {})
    return Verdict(made, PASS if value >= TARGET.bound else SHORT, TARGET)


def verified(at, *hosts):
    return conclude.concluded(hosts, at)


def left(*sets):
    return [(each.conclusion.fault, each.conclusion.hosts) for each in folded(sets).open]


def pair(value):
    return HostVerification(
        "n1", verdicts=(figure("n1", "gpu_load", "GPU3", 150), figure("n1", "rdma", "n1→n2", value))
    )


def test_the_other_end_of_a_path_is_not_judged_by_the_gpus_of_the_first():
    bad = HostVerification("n2", verdicts=(figure("n2", "gpu_load", "GPU3", 50),))
    assert left(verified(1, bad), verified(2, pair(150))) == [("figure-below-target", ("n2",))]


@pytest.mark.parametrize("order", [1, -1])
def test_a_path_is_proven_good_though_both_hosts_were_measured_by_themselves_too(order):
    own = HostVerification("n2", verdicts=(figure("n2", "gpu_load", "GPU3", 150),))
    bad, good = [pair(50), own][::order], [pair(150), own][::order]
    assert left(verified(1, *bad)) == [("figure-below-target", ("n1", "n2"))]
    assert left(verified(1, *bad), verified(2, *good)) == []


def test_wrong_data_is_over_by_the_same_measurement_alone():
    failed = Unmeasured("n1", "gpu_memory", FAILED, "1 of 8 values came back wrong", "", "GPU3")
    bad = HostVerification("n1", unmeasured=(failed,), findings=tuple(findings.wrong_data([failed])))
    other = HostVerification("n1", verdicts=(figure("n1", "gpu_load", "GPU3", 150),))
    same = HostVerification("n1", verdicts=(figure("n1", "gpu_memory", "GPU3", 150),))
    wrong = ("data-wrong", ("n1",))
    assert wrong in left(verified(1, bad), verified(2, other))
    assert wrong not in left(verified(1, bad), verified(2, same))


def search(nodes, domains, names, at, culprits=(), joint=()):
    result = SearchResult(
        culprits=tuple(culprits), joint_nodes=tuple(joint), joint_figure=46.9, level=46.9, shortfall=0.0
    )
    return searched.concluded(SlowSearch(Fleet(nodes, domains, names), result), at)


def culprit(kind, *at):
    return Culprit(Part(kind, at), "", 0.2, (), (), 4, "well", 9.0)


def test_a_search_in_other_leaves_leaves_a_slow_link_open():
    nodes, names = tuple("abcdef"), ("A", "B", "C")
    bad = search(nodes, (0, 0, 1, 1, 2, 2), names, 1, [culprit("link", 1, 2)])
    others = search(nodes[:4], (0, 0, 1, 1), names[:2], 2, joint=range(4))
    one_leaf = search(nodes[2:], (0, 0, 0, 0), ("",), 2, joint=range(4))
    same = search(nodes[2:], (0, 0, 1, 1), names[1:], 2, joint=range(4))
    assert left(bad, others) == left(bad, one_leaf) == [("link-slow", ())]
    assert left(bad, same) == []


def test_a_slow_path_is_the_same_in_whichever_order_its_hosts_are_searched():
    one = search(("n2", "n10"), (0, 0), ("",), 1, [culprit("path", 0, 1)])
    other = search(("n10", "n2"), (0, 0), ("",), 2, [culprit("path", 0, 1)])
    assert left(one, other) == [("path-slow", ("n2", "n10"))]


def test_a_search_of_other_hosts_leaves_a_slow_node_open():
    nodes, one_leaf = ("n1", "n2", "n3", "n4"), (0, 0, 0, 0)
    bad = search(nodes, one_leaf, ("",), 1, [culprit("node", 3)])
    assert left(bad, search(nodes[:3], one_leaf[:3], ("",), 2, joint=range(3))) == [("node-slow", ("n4",))]
    assert left(bad, search(nodes, one_leaf, ("",), 2, joint=range(4))) == []
