"""When the reporter writes the condition of its node, and what it does if the API server does not take it."""

import itertools
import json
import os
import re
import subprocess
import sys
import textwrap
import time

import pytest

from nodetune.guard.node import records
from nodetune.guard.node.condition import ALL, NOT_JUDGED, CheckResults, RecentChecks
from nodetune.guard.node.node_status import ApiRefusedError
from nodetune.guard.node.report import HEARTBEAT_SECONDS, JITTER_SECONDS, STALE_SECONDS, ContainerResults, NodeReporter
from tests.support.condition_server import ApiServer
from tests.unit.guard.reporter_process import look_until, reporting
from tests.unit.guard.test_condition import BAD, BLIND, GOOD

LOOK_SECONDS = 30
MACHINE = "0123456789abcdef"
EIGHT = f"8 GPUs, 10 network adapters (machine {MACHINE})"


def look(gpus=8, adapters=10, promised=0, failed=None, **more):
    """A look that counted so many."""
    counted = {"gpus": gpus, "adapters": adapters, "promised": promised, "machine": MACHINE, "virtual": False, **more}
    return CheckResults(failed or {}, hardware=counted)


class Node:
    """A node whose reporter has a look every 30 seconds of a clock that only moves here."""

    def __init__(self, high=True, enforced=(ALL,)):
        self.now, self.told, self.problems = 1000.0, [], []
        self.has, self.written, self.events = {}, [], []
        self.reporter = NodeReporter("n01", self, RecentChecks(enforced), lambda low, most: most if high else low)

    def patch(self, node, condition, since):
        assert node == "n01"
        problem = self.problems.pop(0) if self.problems else None
        self.told.append((self.now, "refused" if problem else condition.status))
        if problem:
            raise problem
        self.written.append(condition)
        return self.has

    def touch(self, node, hardware=""):
        assert node == "n01"
        if hardware:
            self.has["NodetuneHardware"] = {"message": hardware}
        return self.has

    def tell(self, node, condition):
        assert node == "n01"
        self.events.append((condition.reason, condition.message))

    def see(self, *looks):
        """Take these looks; return what was sent meanwhile, with the seconds since the last of them."""
        begin = len(self.told)
        for look in looks:
            self.reporter.step(look, self.now)
            looked = self.now
            for _ in range(LOOK_SECONDS):
                self.now += 1
                self.reporter.step(None, self.now)
        return [(at - looked, what) for at, what in self.told[begin:]]

    def wait(self, seconds):
        begin = len(self.told)
        for _ in range(seconds):
            self.now += 1
            self.reporter.step(None, self.now)
        return self.told[begin:]


def test_a_change_is_written_after_its_jitter_only():
    assert Node(high=True).see(BAD, BAD, BAD) == [(JITTER_SECONDS, "True")]
    assert Node(high=False).see(BAD, BAD, BAD) == [(0, "True")]


def test_the_condition_is_kept_while_nothing_is_known():
    node = Node()
    node.see(BAD, BAD, BAD)
    assert {what for _, what in node.see(*[BLIND] * 30)} == {"True"}
    assert node.see(GOOD, GOOD) == []
    assert [what for _, what in node.see(GOOD)] == ["False"]


def test_a_guard_that_judges_nothing_says_since_when_and_why():
    node = Node(high=False)
    node.see(BAD, BAD, BAD)
    assert node.see(BLIND, BLIND) == []
    assert [what for _, what in node.see(BLIND)] == ["True"], "its status stays"
    said = node.written[-1]
    assert said.reason == NOT_JUDGED
    began = "not judged since 20[0-9-]*T[0-9:]*Z: the health check did not answer; before: gpu-lost: GPU3: lost"
    assert re.fullmatch(began, said.message)
    assert [reason for reason, _ in node.events] == ["GatingCheckFails", NOT_JUDGED]
    assert node.reporter.state()["verdict"] == "inconclusive"
    again = Node(high=False)
    again.has = {"NodetuneGPUProblem": {"status": "True", "reason": NOT_JUDGED, "message": said.message}}
    again.see(BLIND, BLIND, BLIND)
    assert again.written[-1].message == said.message, "another reporter keeps since when"
    assert again.events == []
    node.see(GOOD, GOOD, GOOD)
    assert [reason for reason, _ in node.events][2:] == ["GatingChecksPass"]
    assert node.reporter.state() == {"verdict": "pass", "reason": ""}


def test_a_node_without_a_status_gets_none_while_nothing_is_judged():
    node = Node(high=False)
    assert node.see(*[BLIND] * 5) == []
    assert [reason for reason, _ in node.events] == [NOT_JUDGED]
    assert [what for _, what in node.see(GOOD, GOOD, GOOD)] == ["False"]


def test_a_reporter_that_starts_again_makes_no_event_of_what_was_there():
    node = Node(high=False)
    message = "gpu-lost: GPU3: lost"
    node.has = {"NodetuneGPUProblem": {"status": "True", "reason": "GatingCheckFails", "message": message}}
    node.see(BAD, BAD, BAD)
    assert node.events == []
    node.see(GOOD, GOOD, GOOD)
    assert node.events == [("GatingChecksPass", "all gating checks pass")]


def test_a_node_with_fewer_gpus_than_it_had_is_never_released():
    """As after a reboot: another reporter, and the lost GPU is gone."""
    first = Node(high=False)
    first.see(*[look(failed=BAD.failed)] * 3)
    assert first.has["NodetuneHardware"]["message"] == EIGHT
    after = Node(high=False)
    after.has = {**first.has, "NodetuneGPUProblem": {"status": "True", "reason": "GatingCheckFails", "message": ""}}
    assert {what for _, what in after.see(*[look(gpus=7)] * 30)} == {"True"}
    assert after.written[-1].message == "hardware-missing: 7 of 8 GPUs"
    assert {what for _, what in after.see(*[look(gpus=0)] * 30)} == {"True"}
    assert [what for _, what in after.see(*[look()] * 3)] == ["False"], "an exchanged GPU: the number counts"


@pytest.mark.parametrize(
    ("before", "seen", "said"),
    [
        (EIGHT, look(gpus=7, virtual=True), "7 of 8 GPUs: a virtual machine may be given fewer"),
        (EIGHT, look(adapters=9), "9 of 10 network adapters: an adapter may be in a reset"),
        ("", look(gpus=0, promised=1), "0 of 1 GPUs: policy, label or machine type promise them"),
        (
            EIGHT,
            CheckResults({}, hardware={"unread": "gpu.count: NVML: unknown error"}),
            "gpu.count: NVML: unknown error",
        ),
        (EIGHT, CheckResults({}, hardware={"gpus": "many"}), "the result of the check cannot be read"),
    ],
)
def test_missing_hardware_that_may_have_a_reason_is_not_judged(before, seen, said):
    node = Node(high=False)
    node.has = {
        "NodetuneHardware": {"message": before},
        "NodetuneGPUProblem": {"status": "True", "reason": "GatingCheckFails", "message": "gpu-lost"},
    }
    node.see(seen, seen, seen)
    assert (node.written[-1].status, node.written[-1].reason) == ("True", NOT_JUDGED)
    assert said in node.written[-1].message
    assert node.has["NodetuneHardware"]["message"] == before


def test_a_missing_gpu_is_not_judged_by_the_other_checks_that_are_enforced():
    node = Node(high=False, enforced=["gpu-lost"])
    node.has = {
        "NodetuneHardware": {"message": EIGHT},
        "NodetuneGPUProblem": {"status": "True", "reason": "GatingCheckFails", "message": "gpu-lost"},
    }
    assert {what for _, what in node.see(*[look(gpus=7)] * 30)} == {"True"}


@pytest.mark.parametrize("memory", [f"8 GPUs, 10 network adapters (machine {'f' * 16})", "", "anything"])
def test_another_machine_and_one_without_memory_start_again(memory):
    node = Node(high=False)
    node.has = {"NodetuneHardware": {"message": memory}}
    assert [what for _, what in node.see(*[look(gpus=4)] * 3)] == ["False"]
    assert node.has["NodetuneHardware"]["message"].startswith("4 GPUs, ")


def test_a_memory_that_was_removed_accepts_the_smaller_node():
    node = Node(high=False)
    node.see(*[look()] * 3)
    node.see(*[look(gpus=7)] * 3)
    assert node.told[-1][1] == "True"
    del node.has["NodetuneHardware"]
    node.see(*[look(gpus=7)] * 15)
    assert node.told[-1][1] == "False"
    assert node.has["NodetuneHardware"]["message"].startswith("7 GPUs, ")


def test_nobody_asks_for_hardware_where_the_check_is_waived_or_does_not_gate():
    node = Node(high=False)
    node.has = {"NodetuneHardware": {"message": EIGHT}}
    assert [what for _, what in node.see(GOOD, GOOD, GOOD)] == ["False"]


def test_one_heartbeat_is_written_in_five_minutes():
    node = Node(high=False)
    sent = node.see(*[GOOD] * 83)
    assert [what for _, what in sent] == ["False"] * 10
    gaps = {round(later[0] - earlier[0]) for earlier, later in itertools.pairwise(sent)}
    assert gaps == {HEARTBEAT_SECONDS * 0.9}


def test_a_check_that_stopped_looking_is_no_verdict():
    node = Node(high=False)
    node.see(GOOD, GOOD, GOOD)
    assert {what for _, what in node.wait(2000)} == {"False"}
    assert {each.reason for each in node.written[2:]} == {NOT_JUDGED}
    assert "the check has found nothing for 300 seconds; before: all gating checks pass" in node.written[-1].message
    assert node.see(BAD, BAD) == []


def test_looks_far_apart_are_not_in_a_row():
    node = Node(high=False)
    for _ in range(5):
        node.see(BAD)
        assert node.wait(int(STALE_SECONDS)) == []


def test_a_refused_change_is_tried_again_ever_less_often():
    node = Node()
    node.problems = [ApiRefusedError("503") for _ in range(6)]
    node.see(BAD, BAD, BAD)
    node.see(*[BAD] * 10)
    times = [at for at, _ in node.told]
    assert [what for _, what in node.told[:7]] == ["refused"] * 6 + ["True"]
    assert [later - earlier for earlier, later in itertools.pairwise(times)] == [5, 10, 20, 40, 60, 60]


def test_the_wait_that_the_server_asks_for_is_kept():
    node = Node(high=False)
    node.problems = [ApiRefusedError("429", wait=90)]
    node.see(BAD, BAD, BAD)
    node.see(BAD, BAD, BAD)
    (refused, _), (written, _) = node.told
    assert written - refused == 90


def test_what_changed_meanwhile_is_what_is_written_in_the_end():
    node = Node(high=False)
    node.problems = [ApiRefusedError("gone") for _ in range(3)]
    node.see(BAD, BAD, BAD)
    node.see(GOOD, GOOD, GOOD)
    assert node.told[-1][1] == "False"


def test_each_result_is_taken_once(tmp_path):
    file = str(tmp_path / "health.json")
    results = ContainerResults(file)
    assert results.new() is None
    records.write(file, json.dumps({"verdict": "pass"}))
    assert not results.new().why
    assert results.new() is None
    records.write(file, '{"verdict": "pa')
    assert results.new().why


CALL = """
    import sys
    sys.path.insert(0, sys.argv[1])
    from nodetune.guard.node import node_status
    from nodetune.guard.node.condition import Condition
    node_status.SECONDS = float(sys.argv[4])
    server = node_status.Server("127.0.0.1", int(sys.argv[2]), sys.argv[3])
    for _ in range(int(sys.argv[5])):
        try:
            server.patch("n/1", Condition("True", "GatingCheckFails", ("gpu-lost",), "gpu-lost: GPU3"), 0)
            print("written", 0)
        except node_status.ApiRefusedError as problem:
            print(problem, round(problem.wait))
"""


STATUS = "/api/v1/nodes/n01/status"


@pytest.fixture
def api(tmp_path):
    server = ApiServer(tmp_path)
    with server.running():
        yield server


def patched(program, api, times=1, seconds=20, port=None):
    """What the program of the node says of as many patches."""
    arguments = [str(program), str(port or api.port), str(api.folder), str(seconds), str(times)]
    command = [sys.executable, "-I", "-S", "-c", textwrap.dedent(CALL), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_one_condition_is_patched_with_the_token_of_the_file(program, api):
    assert patched(program, api) == ["written 0"]
    path, headers, body = api.requests[0]
    assert path == "/api/v1/nodes/n%2F1/status"
    assert headers["Content-Type"] == "application/strategic-merge-patch+json"
    assert headers["Authorization"] == "Bearer first"
    condition, memory = body["status"]["conditions"]
    assert sorted(memory) == ["lastHeartbeatTime", "status", "type"], "what is remembered stays"
    assert time.strptime(condition.pop("lastHeartbeatTime"), "%Y-%m-%dT%H:%M:%SZ")
    assert condition == {
        "type": "NodetuneGPUProblem",
        "status": "True",
        "reason": "GatingCheckFails",
        "message": "gpu-lost: GPU3",
        "lastTransitionTime": "1970-01-01T00:00:00Z",
    }


def test_what_the_server_refuses_is_told_in_one_line(program, api):
    api.answers = [401, 403, 409, (429, {"Retry-After": "7"}), (500, {"Retry-After": "soon"}), "cut", 200]
    said = patched(program, api, 7)
    assert [line.partition(":")[0] for line in said[:5]] == [
        "401 Unauthorized",
        "403 Forbidden",
        "409 Conflict",
        "429 Too Many Requests",
        "500 Internal Server Error",
    ]
    assert [line.rpartition(" ")[2] for line in said] == ["0", "0", "0", "7", "0", "0", "0"]
    assert "said with 403" in said[1]
    assert said[6] == "written 0"


@pytest.mark.parametrize("how", ["stall", "drip"])
def test_a_server_that_does_not_come_to_an_end_is_left(program, api, how):
    api.answers = [how]
    (said,) = patched(program, api, seconds=1)
    assert said.startswith("the API server did not answer within 1 s")


def test_a_server_that_is_not_trusted_gets_no_token(program, api, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    ApiServer(other)
    (said,) = patched(program, ApiServerAt(other), port=api.port)
    assert "CERTIFICATE_VERIFY_FAILED" in said
    assert api.requests == []


class ApiServerAt:
    def __init__(self, folder):
        self.folder, self.port = folder, 0


@pytest.mark.parametrize("token", ["", "two\nlines", "ümlaut"])
def test_what_is_no_token_is_not_sent_nor_told(program, api, token):
    (api.folder / "token").write_text(token)
    (said,) = patched(program, api)
    assert "token" in said or "ascii" in said
    assert "two" not in said
    assert api.requests == []


def test_a_missing_token_and_a_closed_port_are_told(program, api):
    (api.folder / "token").unlink()
    assert "No such file" in patched(program, api)[0]
    (api.folder / "token").write_text("first")
    assert "refused" in patched(program, api, port=1)[0]


def test_the_reporter_ends_at_once_and_clears_nothing(program, api):
    """It reports what three looks agree on, with the token as it is then."""
    with reporting(program, api) as child:
        (api.folder / "token").write_text("second")
        look_until(api, child, lambda: len(api.requests) == 3)
        assert child.stdout.readline() == "nodetune: n01: True GatingCheckFails: gpu-lost: GPU3: lost\n"
        child.terminate()
        assert child.wait() == 0
    assert [path for path, _, _ in api.requests] == [STATUS, STATUS, "/api/v1/namespaces/default/events"]
    assert api.requests[1][1]["Authorization"] == "Bearer second"
    event = api.requests[2][2]
    assert (event["reason"], event["type"], event["involvedObject"]["name"]) == ("GatingCheckFails", "Warning", "n01")


def test_a_reporter_outside_of_a_pod_says_so(program):
    command = [sys.executable, "-I", "-S", str(program / "nodetune/guard/node/__main__.py"), "report"]
    ended = subprocess.run(command, env={}, capture_output=True, text=True, cwd=os.sep)
    assert ended.returncode == 3
    assert ended.stdout == "nodetune: inconclusive: not in a pod of Kubernetes: 'KUBERNETES_SERVICE_HOST'\n"


CLEAR = """
    import sys
    sys.path.insert(0, sys.argv[1])
    from nodetune.guard.node import clear, main, report
    report.TOKENS, clear.PAUSE_SECONDS = sys.argv[2], 0
    sys.exit(main.main(["clear"]))
"""


def test_the_condition_is_cleared_until_no_node_has_it_twice(program, api):
    api.nodes = {"n01": ["Ready", "NodetuneGPUProblem"], "n02": ["Ready"], "n03": ["NodetuneGPUProblem", "Ready"]}
    api.answers = [200, 503]
    command = [sys.executable, "-I", "-S", "-c", textwrap.dedent(CLEAR), str(program), str(api.folder)]
    environment = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(api.port)}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert ended.stdout.splitlines() == [
        "nodetune: 503 Service Unavailable: said with 503",
        "nodetune: cleared on 1 node",
        "nodetune: no node has the condition",
        "nodetune: no node has the condition",
    ]
    assert ended.returncode == 0
    assert api.nodes == {"n01": ["Ready"], "n02": ["Ready"], "n03": ["Ready"]}
