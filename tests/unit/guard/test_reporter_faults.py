"""Reporters of many nodes while their API server fails: no wrong condition, no flood, and it is as it should be soon after."""

import os
import random
import re
from collections import Counter, deque
from pathlib import Path

import pytest

from nodetune.guard.node import report
from nodetune.guard.node.condition import ALL, LOOKS, NOT_JUDGED, TYPE, RecentChecks
from nodetune.guard.node.node_status import ApiRefusedError
from nodetune.guard.node.report import JITTER_SECONDS, MAX_RETRY_SECONDS, STALE_SECONDS, NodeReporter
from tests.support.condition_server import ApiServer
from tests.unit.guard.reporter_process import look_until, reporting
from tests.unit.guard.test_condition import BAD, BLIND, GOOD

FIRST_CHANCES = 2
"""When to ask what there is, and when to write what was seen first."""
EVERY = 30
"""Seconds between the looks at a node."""
RECOVERED = int(MAX_RETRY_SECONDS + JITTER_SECONDS)
"""Seconds after which everything is written, once the API server is back."""
REFUSALS = [
    *("401 Unauthorized", "403 Forbidden", "404 Not Found", "409 Conflict", "410 Gone", "500 Internal Server Error"),
    *("503 Service Unavailable", "[Errno 111] Connection refused", "the API server did not answer within 10 s"),
]


class Node:
    """A node of a cluster, with its reporter. `look` is what it finds now; `written` is its condition."""

    def __init__(self, cluster, name):
        self.cluster, self.look, self.written = cluster, GOOD, None
        self.offset = 0 if cluster.together else cluster.chance.randrange(EVERY)
        self.drawn = 0
        self.looks = deque(maxlen=LOOKS)
        self.reporter = NodeReporter(name, self, RecentChecks([ALL]), self.between)

    def between(self, low, most):
        self.drawn += 1
        return low if self.drawn <= FIRST_CHANCES and self.cluster.together else self.cluster.chance.uniform(low, most)

    def step(self, now):
        look = self.look if (now + self.offset) % EVERY == 0 else None
        if look is not None:
            self.looks.append((now, look))
        self.reporter.step(look, now)

    def touch(self, _name, _hardware=""):
        return {TYPE: {"status": self.written, "reason": "of before"}} if self.written else {}

    def tell(self, _name, _condition):
        pass

    def patch(self, _name, condition, _since):
        self.cluster.sent[self.cluster.now] += 1
        if condition.reason == NOT_JUDGED:
            assert condition.status == self.written, "nothing was judged"
            self.cluster.fail()
            return {}
        assert {str(each is BAD) for _, each in self.looks} == {condition.status}, "the last looks agree on it"
        assert self.cluster.now - self.looks[-1][0] <= STALE_SECONDS
        try:
            self.cluster.fail()
        except LostError:
            self.written = condition.status
            raise
        self.written = condition.status
        return {}


class LostError(ApiRefusedError):
    """The server did it, but its answer was lost."""


class Cluster:
    """Nodes and a clock that only moves here. `fail` raises what the API server does wrong now.

    Nodes that are `together` look at the same time, and write what they see first at the same time.
    """

    def __init__(self, count, seed=1, together=False):
        self.chance, self.now, self.sent, self.together = random.Random(seed), 0, Counter(), together
        self.nodes = [Node(self, f"n{number}") for number in range(count)]
        self.fail = lambda: None

    def wait(self, seconds):
        for _ in range(seconds):
            self.now += 1
            for node in self.nodes:
                node.step(self.now)

    def conditions(self):
        return {node.written for node in self.nodes}

    def busiest(self, begin):
        """The most requests in a second since then."""
        return max(number for at, number in self.sent.items() if at > begin)


def gone():
    raise ApiRefusedError("[Errno 111] Connection refused")


def test_an_api_server_gone_for_ten_minutes_is_waited_for():
    cluster = Cluster(200)
    cluster.wait(LOOKS * EVERY + int(JITTER_SECONDS))
    assert cluster.conditions() == {"False"}
    cluster.fail, begin = gone, cluster.now
    for node in cluster.nodes:
        node.look = BAD
    cluster.wait(600)
    assert cluster.conditions() == {"False"}, "nothing reached the server"
    asked = sum(number for at, number in cluster.sent.items() if at > begin)
    assert asked / len(cluster.nodes) / 10 < 2, "requests of a node in a minute"
    cluster.fail, begin = lambda: None, cluster.now
    cluster.wait(RECOVERED)
    assert cluster.conditions() == {"True"}
    assert cluster.busiest(begin) < len(cluster.nodes) / 8


def test_nodes_that_see_the_same_at_once_do_not_write_at_once():
    cluster = Cluster(400)
    for node in cluster.nodes:
        node.offset = 0
    cluster.wait((LOOKS + 1) * EVERY)
    assert cluster.conditions() == {"False"}
    assert cluster.busiest(0) < len(cluster.nodes) / 5


@pytest.mark.parametrize(("wait", "share"), [(0, 0.55), (60, 0.2)])
def test_nodes_that_were_refused_at_once_do_not_come_back_at_once(wait, share):
    cluster = Cluster(400, together=True)

    def busy():
        raise ApiRefusedError("429 Too Many Requests", wait=wait)

    cluster.fail = busy
    cluster.wait(LOOKS * EVERY)
    assert cluster.sent == {cluster.now: len(cluster.nodes)}
    cluster.wait(4 * EVERY)
    assert cluster.busiest(LOOKS * EVERY) < share * len(cluster.nodes)
    cluster.fail = lambda: None
    cluster.wait(RECOVERED)
    assert cluster.conditions() == {"False"}


@pytest.mark.parametrize("seed", range(4))
def test_a_thousand_runs_with_faults_never_write_what_was_not_seen(seed):
    """`Node.patch` judges each write; after the faults everything is as it is."""
    cluster = Cluster(250, seed)

    def fail():
        how = cluster.chance.random()
        if how < 0.6:
            raise ApiRefusedError(cluster.chance.choice(REFUSALS), wait=cluster.chance.choice((0, 0, 0, 7)))
        if how < 0.7:
            raise LostError("the answer was cut off")

    cluster.fail = fail
    for _ in range(12):
        for node in cluster.nodes:
            node.look = cluster.chance.choice((node.look, node.look, node.look, GOOD, BAD, BLIND, None))
        cluster.wait(EVERY * cluster.chance.choice((1, 1, 1, 1, 12)))
    cluster.fail, wanted = lambda: None, {}
    for node in cluster.nodes:
        node.look = cluster.chance.choice((GOOD, BAD))
        wanted[node] = str(node.look is BAD)
    cluster.wait((LOOKS + 1) * EVERY + RECOVERED)
    assert {node: node.written for node in cluster.nodes} == wanted


def test_a_clock_that_jumps_changes_no_decision(monkeypatch):
    def lived(clock):
        monkeypatch.setattr(report.time, "time", clock)
        cluster = Cluster(20)
        cluster.wait(400)
        for node in cluster.nodes:
            node.look = BAD
        cluster.wait(700)
        return cluster.sent, cluster.conditions()

    jumps = random.Random(2)
    assert lived(lambda: jumps.uniform(0, 4e9)) == lived(lambda: 1.7e9)


HTTP = [401, 403, 404, 409, 410, (429, {"Retry-After": "0"}), 500, (503, {"Retry-After": "x"}), "cut", "half"]
HASTY = {"TICK_SECONDS": 0.01, "RETRY_SECONDS": 0.01, "MAX_RETRY_SECONDS": 0.02, "HEARTBEAT_SECONDS": 0.02}
FLAT_KIB = 512


def used(pid):
    """Memory in KiB, and how many files are open."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]), len(os.listdir(f"/proc/{pid}/fd"))


def test_a_reporter_lives_through_all_faults_and_grows_by_nothing(program, tmp_path):
    with ApiServer(tmp_path).running() as api, reporting(program, api, **HASTY) as child:
        again = [each for refused in HTTP for each in (refused, 200)]  # then it asks again what there is
        api.answers = [200, *again, 200, 200, *again, 200]
        look_until(api, child, lambda: len(api.requests) > len(again) + 2)
        memory, files = used(child.pid)
        look_until(api, child, lambda: not api.answers)
        grown, more = used(child.pid)
        assert grown < memory + FLAT_KIB
        assert more <= files + 2  # of the pipe to what asks
        children = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
        assert len(children) <= 1
        said = [child.stdout.readline() for _ in range(len(HTTP) + 1)]
    refused = [re.match(r"nodetune: n01: not written: (\d*)", line)[1] for line in said[:-1]]
    assert refused == ["401", "403", "404", "409", "410", "429", "500", "503", "", ""]
    assert said[-1] == "nodetune: n01: True GatingCheckFails: gpu-lost: GPU3: lost\n"


def test_an_expired_token_is_replaced_by_that_of_the_file(program, tmp_path):
    with ApiServer(tmp_path).running() as api, reporting(program, api, **HASTY) as child:
        api.token = "second"
        look_until(api, child, lambda: len(api.requests) > 2)
        assert child.stdout.readline().startswith("nodetune: n01: not written: 401 Unauthorized")
        (api.folder / "token").write_text("second\n")
        look_until(api, child, lambda: "NodetuneGPUProblem" in api.conditions.get("n01", ()))
        assert child.stdout.readline() == "nodetune: n01: True GatingCheckFails: gpu-lost: GPU3: lost\n"
