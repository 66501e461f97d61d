"""The hosts of a run that changes them: who is drained, who is resumed, and what is told of the others."""

import pytest

from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.hosts.target import Target
from nodetune.remediation import kubernetes
from nodetune.remediation.ansible import play
from nodetune.remediation.ansible.events import Event, Outcome
from nodetune.remediation.host_operations import HostOperations
from nodetune.remediation.request import ChangeRequest

HOSTS = ("gpu1", "gpu2", "gpu3")


class Run:
    """A run that keeps nothing."""

    id = "RUN"


@pytest.fixture
def operations(monkeypatch):
    """operations(outcomes of each play, **request): the hosts of a run, and the list of its plays."""

    def make(*plays, transport="auto", **request):
        left, asked = list(plays), []

        def played(name, targets, variables, play_options, *_more):
            asked.append((name, [target.name for target in targets], dict(variables), play_options.seconds))
            outcomes = {each.host: each for each in left.pop(0)}
            return {target.name: outcomes.get(target.name, Outcome(target.name)) for target in targets}

        monkeypatch.setattr(play, "play", played)
        return HostOperations(
            map(Target, HOSTS), ChangeRequest(ConnectionOptions(transport=transport), **request), Run(), print
        ), asked

    return make


def changed(host):
    return Outcome(host, results=(Event(host, "Drain", changed=True),))


def test_hosts_that_were_drained_and_those_that_were_lost_are_resumed_later(operations):
    busy = Outcome("gpu2", "failed", "not free", (Event("gpu2", "Wait", changed=True, result={"busy": "job 7 runs"}),))
    found, asked = operations(
        [changed("gpu1"), busy, Outcome("gpu3", "unreachable", "no route")], drain="slurm", drain_wait=2
    )
    assert found.drained(HOSTS) == (["gpu1", "gpu2", "gpu3"], {"gpu2": "job 7 runs", "gpu3": "drain: no route"})
    tries = {"nodetune_drain_tries": 8, "nodetune_drain_delay": 15.0}
    assert asked == [("drain", list(HOSTS), dict.fromkeys(HOSTS, tries), 720.0)]


def test_a_drain_is_tried_once_where_nobody_waits_and_what_others_drained_is_not_ours(operations):
    found, asked = operations([], drain="slurm", drain_wait=0)
    assert found.drained(["gpu1"]) == ([], {})
    assert asked[0][2] == {"gpu1": {"nodetune_drain_tries": 1, "nodetune_drain_delay": 15.0}}


def test_what_is_not_resumed_is_left_drained_with_the_reason(operations):
    lost = Outcome("gpu2", "unreachable", "no route")
    given_back = [changed("gpu1"), Outcome("gpu3", "failed", "refused")]
    found, _ = operations([changed("gpu1"), lost, changed("gpu3")], given_back, [lost], [], drain="slurm")
    found.drained(HOSTS)
    found.give_back(["gpu1", "gpu2", "gpu3"])
    assert found.left_drained == {"gpu3": "refused"}, "nobody had drained gpu2 if it is well now"
    found.give_back(["gpu2"])
    assert found.left_drained["gpu2"] == "perhaps: the host was lost during the drain: no route"
    found.give_back(["gpu1"])
    assert found.left_drained["gpu1"] == "slurmd does not run there, or someone else has drained it since"


def test_nothing_is_resumed_after_an_interruption(operations):
    found, asked = operations([Outcome("gpu1", "interrupted", "stopped by Ctrl-C")])
    found.play("remediate", ["gpu1"])
    found.give_back(["gpu1"])
    assert (found.stopped, found.left_drained) == ("stopped by Ctrl-C", {"gpu1": "stopped by Ctrl-C"})
    assert [name for name, *_ in asked] == ["remediate"]


@pytest.mark.parametrize("stopped", [False, True])
def test_nodes_of_kubernetes_are_cordoned_and_given_back_by_the_cluster(operations, monkeypatch, stopped):
    class Cordons:
        def __init__(self, connection, run, heard):
            assert (connection.transport, run) == ("kubernetes", "RUN")
            self.stopped = stopped

        def drained(self, hosts, seconds):
            assert seconds == 3600
            return hosts[:2], {hosts[2]: "pods are left"}

        def given_back(self, hosts):
            return {hosts[0]: "somebody else's cordon"}

    monkeypatch.setattr(kubernetes, "Cordons", Cordons)
    found, asked = operations(transport="kubernetes", drain="kubernetes")
    assert found.drained(HOSTS) == (("gpu1", "gpu2"), {"gpu3": "pods are left"})
    found.give_back(["gpu1", "gpu2"])
    why = {"gpu1": "stopped by Ctrl-C", "gpu2": "stopped by Ctrl-C"} if stopped else {"gpu1": "somebody else's cordon"}
    assert found.left_drained == why
    assert asked == []


@pytest.mark.parametrize(
    ("assumed", "guard"), [(False, {"gpu_idle": True, "drained": True}), (True, {"gpu_idle": True, "drained": False})]
)
def test_hosts_are_rebooted_while_they_are_free_and_those_that_stay_away_are_told(operations, assumed, guard):
    found, asked = operations(
        [Outcome("gpu2", "failed", "not back after 10 min")], [], assume_drained=assumed, reboot_wait=10
    )
    assert found.rebooted(["gpu1", "gpu2"]) == {"gpu2": "reboot: not back after 10 min"}
    given = {"nodetune_reboot_seconds": 600, "nodetune_guard": guard}
    assert asked == [("reboot", ["gpu1", "gpu2"], dict.fromkeys(("gpu1", "gpu2"), given), 1500.0)]
    found.rebooted(["gpu1"], {"gpu_idle": False})
    assert asked[1][2]["gpu1"]["nodetune_guard"] == {"gpu_idle": False}
