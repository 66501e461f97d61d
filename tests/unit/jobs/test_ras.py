"""`nodetune slow --ras`: which ranks of a running job are missing or behind, as NCCL's RAS service says."""

import json
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from nodetune.foundation import schemas
from nodetune.foundation.request import RequestError
from nodetune.jobs.late_ranks import labels, ras_client, ras_response, ras_status, run
from nodetune.jobs.late_ranks.request import PORT, SlowRequest, address
from tests.support import ras_server
from tests.support.commandline import nodetune

RECORDED = Path(__file__).parents[2] / "data" / "recordings" / "ras"


def asked(*answers, json=True):
    with ras_server.serving(*answers, json=json) as service:
        return run.run(SlowRequest(ras=f"127.0.0.1:{service.port}"), lambda _seconds: None), service.heard


def found(*answers, json=True):
    status, _ = asked(*answers, json=json)
    assert not status.problem
    return [(each.kind, [rank.rank for rank in each.ranks], each.why) for each in status.findings]


def test_the_commands_are_those_of_the_protocol_and_json_is_asked_for():
    status, heard = asked(ras_server.answer([7] * 16))
    assert heard == ["CLIENT PROTOCOL 2", "TIMEOUT 10", "SET FORMAT json", "VERBOSE STATUS"] * 2
    assert (status.version, status.communicators, status.findings) == ("2.30.7", 1, ())
    assert run.exit_code(status) == 0


def test_a_rank_that_stays_behind_is_named_with_the_collective():
    behind = ras_server.answer([7] * 13 + [6] + [7] * 2)
    status, _ = asked(behind)
    (only,) = status.findings
    assert labels.finding(only) == (
        "communicator 0xae94423cfbb2ef4a: rank 13 of 16 (10.0.0.2 GPU 5 process 1013): launched AllReduce up to 6; the furthest is at 7"
    )
    assert run.exit_code(status) == 1


def test_counts_that_grow_belong_to_a_job_that_runs():
    status, _ = asked(ras_server.answer([7] * 15 + [6]), ras_server.answer([9] * 15 + [8]))
    assert not status.findings
    assert status.notes == ("counts differ in 1 communicator of processes that went on: usual in a job that runs",)


def test_a_rank_that_is_alone_ahead_is_said_to_be_ahead():
    assert found(ras_server.answer([7] * 15 + [8])) == [("ahead", [15], "launched AllReduce 8, which 15 ranks did not")]


def test_a_rank_that_waits_in_another_collective_shows_in_both():
    seen = found(ras_server.answer([8] * 15 + [7], gathers={15: 5}))
    assert ("behind", [15], "launched AllReduce up to 7; the furthest is at 8") in seen
    assert ("ahead", [15], "launched AllGather 5, which 15 ranks did not") in seen


@pytest.mark.parametrize(("dead", "why"), [(False, "does not answer"), (True, "dead: unreachable for a minute")])
def test_a_rank_without_data_is_missing(dead, why):
    assert found(ras_server.answer([7] * 16, lost=[5], dead=dead)) == [("missing", [5], why)]


def test_an_error_of_a_rank_is_reported():
    assert found(ras_server.answer([7] * 16, errors={3: 6})) == [("error", [3], "remote process error")]


def test_a_job_in_which_all_have_launched_the_same_says_that_nobody_continues():
    status, _ = asked(ras_server.answer([7] * 16))
    assert status.notes[0].startswith("no rank launched anything within 5 s: all compute, or all are in a collective")


def test_the_text_of_older_versions_is_shown_and_not_judged():
    text = (RECORDED / "stopped.txt").read_text()
    status, heard = asked(text, json=False)
    assert heard.count("VERBOSE STATUS") == 1
    assert (status.text, status.findings, run.exit_code(status)) == (text, (), 3)


def test_what_the_text_of_older_versions_says_is_printed_safely():
    text = (RECORDED / "stopped.txt").read_text().replace("node gpu001", "node \x1b[2J")
    with ras_server.serving(text, json=False) as service:
        done = nodetune("slow", "--ras", f"127.0.0.1:{service.port}")
        data = json.loads(nodetune("slow", "--ras", f"127.0.0.1:{service.port}", "--format", "json").stdout)
    assert done.returncode == 3, done.stderr
    assert "Missing communicator data from 1 job process" in done.stdout
    assert "\x1b" not in done.stdout
    assert list(schemas.violations("ras", data)) == []


def test_a_rank_is_not_behind_while_its_process_launches_in_another_communicator():
    """One data-parallel collective a step, thousands in the other communicators: the counts of the one stand for seconds."""
    first, second = (json.loads(ras_server.answer([40, 41, 41, 41])) for _ in range(2))
    other = json.loads(ras_server.answer([500] * 4))["communicators"][0] | {"hash": "0x1"}
    later = json.loads(ras_server.answer([900] * 4))["communicators"][0] | {"hash": "0x1"}
    first["communicators"].append(other)
    second["communicators"].append(later)
    status, _ = asked(json.dumps(first), json.dumps(second))
    assert not status.findings
    assert "usual in a job that runs" in status.notes[0]


def test_a_communicator_that_is_not_ready_yet_has_no_error():
    """Those made by ncclCommSplit start with ncclInternalError."""
    status, _ = asked(ras_server.answer([0] * 4).replace('"init_state": 0', '"init_state": 3'))
    assert not status.findings
    assert "4 ranks of communicators not ready yet" in status.notes


def test_a_rank_that_has_just_left_a_communicator_is_not_missing():
    gone = ras_server.answer([7] * 4, lost=[3]).replace('"unresponsive": true', '"unresponsive": false')
    assert found(ras_server.answer([7] * 4), gone) == []
    assert found(gone, gone) == [("missing", [3], "has left the communicator, or not joined it")]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("localhost", ("localhost", PORT)),
        ("gpu001:5", ("gpu001", 5)),
        ("[::1]:28029", ("::1", 28029)),
        ("[fe80::1]", ("fe80::1", PORT)),
    ],
)
def test_an_address_may_leave_out_the_port(given, expected):
    assert address(given) == expected


@pytest.mark.parametrize("given", ["", "a b", "a:0", "a:70000", "a:b", "::1", "[x]:1", "a\n"])
def test_an_address_that_is_none_is_refused(given):
    with pytest.raises(RequestError):
        SlowRequest(ras=given)


def serve(reply, times=1):
    """Answer connections with these bytes and close them."""
    server = socket.create_server(("127.0.0.1", 0))

    def answer():
        for _ in range(times):
            client, _ = server.accept()
            with client:
                client.recv(100)
                client.sendall(reply)

    threading.Thread(target=answer, daemon=True).start()
    return server


@pytest.mark.parametrize(
    "reply",
    [b"", b"HTTP/1.1 400 Bad Request\r\n", b"\x00" * 9000, b"SERVER PROTOCOL 2\n", b"SERVER PROTOCOL 2\nOK\nOK\n{"],
)
def test_other_services_are_no_answer(reply):
    with serve(reply) as server:
        status = run.run(SlowRequest(ras=f"127.0.0.1:{server.getsockname()[1]}"), lambda _seconds: None)
    assert status.problem
    assert run.exit_code(status) == 3


def test_an_answer_without_end_is_bounded(monkeypatch):
    monkeypatch.setattr(ras_client, "MAX_BYTES", 1 << 16)
    status, _ = asked("x" * (1 << 20))
    assert status.problem == "the answer is larger than 64 KiB"


def test_an_answer_that_trickles_ends_at_the_deadline(monkeypatch):
    monkeypatch.setattr(ras_client, "MAX_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def trickle():
            client, _ = server.accept()
            with client, suppress(OSError):
                for _ in range(200):
                    client.sendall(b".")
                    time.sleep(0.01)

        threading.Thread(target=trickle, daemon=True).start()
        status = run.run(SlowRequest(ras=f"127.0.0.1:{server.getsockname()[1]}"), lambda _seconds: None)
    assert status.problem == "no complete answer within 0.2 s"


def test_a_service_that_says_nothing_is_given_up(monkeypatch):
    monkeypatch.setattr(ras_client, "GREETING", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as server:
        status = run.run(SlowRequest(ras=f"127.0.0.1:{server.getsockname()[1]}"), lambda _seconds: None)
    assert status.problem == "it accepts connections and says nothing: the processes that listen there are stopped"


def test_a_stopped_process_that_listens_on_the_same_port_is_passed_over(monkeypatch):
    """All processes of a node listen with SO_REUSEPORT: the kernel gives each of them some of the connections."""
    monkeypatch.setattr(ras_client, "GREETING", 0.2)
    with (
        ras_server.serving(ras_server.answer([7] * 16)) as service,
        socket.create_server(("127.0.0.1", service.port), reuse_port=True),
    ):
        statuses = [run.run(SlowRequest(ras=f"127.0.0.1:{service.port}"), lambda _seconds: None) for _ in range(5)]
    assert [each.problem for each in statuses] == [""] * 5


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"communicators": 5}',
        "nonsense",
    ],
)
def test_an_answer_of_another_form_is_unreadable(text):
    with pytest.raises(ras_response.UnreadableError):
        ras_response.read(text)


@pytest.mark.parametrize(
    "communicators",
    [
        [5, None, {"hash": 3}, {"hash": "0x1", "ranks": 5, "missing_ranks": [3, {}]}],
        [{"hash": "0x1", "ranks": [{"rank": "x", "status": [], "collective_counts": {"AllReduce": -1}}, []]}],
        [{"hash": "0x1", "ranks": [{"rank": 1 << 70, "collective_counts": {"AllReduce": 1.5}}]}],
    ],
)
def test_hostile_json_does_no_harm(communicators):
    answer = ras_response.read(json.dumps({"communicators": communicators, "ras": 3}))
    assert all(0 <= rank.rank < 1 << 63 for each in answer.communicators for rank in each.ranks)


def test_an_answer_with_a_collective_of_its_own_for_each_rank_is_judged_in_linear_time():
    """Anyone may answer on the port: with one look at all ranks for each name this test would not end."""
    ranks = [{"rank": rank, "collective_counts": {f"c{rank}": 1}} for rank in range(200_000)]
    answer = ras_response.read(json.dumps({"communicators": [{"hash": "1", "size": 200_000, "ranks": ranks}]}))
    assert ras_status.compare("", answer, answer, 1.0).findings == ()


def test_the_command_says_that_nothing_is_missing():
    with ras_server.serving(ras_server.answer([7] * 16)) as service:
        done = nodetune("slow", "--ras", f"127.0.0.1:{service.port}", "--pause", "0")
    assert done.returncode == 0, done.stderr
    assert "nothing      is missing: all ranks of 1 communicator answer, and none is behind the others" in done.stdout


def test_the_command_says_what_to_do_without_an_answer():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    done = nodetune("slow", "--ras", f"127.0.0.1:{port}")
    assert done.returncode == 3, done.stderr
    assert f"no answer    127.0.0.1:{port}: connection refused" in done.stdout
    assert "NCCL_RAS_ENABLE" in done.stdout
    assert "NCCL_RAS_ADDR" in done.stdout


def test_the_document_follows_its_schema_and_is_safe():
    hostile = ras_server.answer([7] * 15 + [6]).replace("10.0.0.2", "10.0.0.2\\u001b[2J")
    with ras_server.serving(hostile) as service:
        place = ("slow", "--ras", f"127.0.0.1:{service.port}", "--pause", "0")
        told = nodetune(*place)
        done = nodetune(*place, "--format", "json")
    assert "\x1b" not in told.stdout
    data = json.loads(done.stdout)
    assert list(schemas.violations("ras", data)) == []
    assert data["findings"][0]["ranks"][0]["counts"]["AllReduce"] == 6


def test_a_real_job_whose_rank_1_has_stopped_before_a_collective():
    """NCCL 2.28.9 on two H200s."""
    answer = ras_response.read((RECORDED / "behind.json").read_text())
    (only,) = ras_status.compare("localhost", answer, answer, 5).findings
    (rank,) = only.ranks
    assert (only.kind, rank.rank, rank.host, rank.gpu, rank.pid) == (ras_status.BEHIND, 1, "gpu001", "1", 1393)
    assert only.why == "launched AllReduce up to 403; the furthest is at 404"


def test_a_real_job_whose_rank_0_is_stopped_and_whose_rank_2_sleeps():
    """NCCL 2.28.9 on four H200s."""
    answer = ras_response.read((RECORDED / "stopped.json").read_text())
    found = ras_status.compare("localhost", answer, answer, 5)
    assert [(each.kind, [rank.rank for rank in each.ranks]) for each in found.findings] == [
        (ras_status.MISSING, [0]),
        (ras_status.BEHIND, [2]),
    ]
    assert not found.notes


def test_a_missing_rank_is_read_although_nccl_leaves_out_a_comma():
    given = ras_server.answer([7] * 16, lost=[3])
    wrong = given.replace(
        '"nvml_dev": 3,\n          "status": {\n            "unresponsive"',
        '"nvml_dev": 3\n          "status": {\n            "unresponsive"',
    )
    assert wrong != given
    assert ras_response.read(wrong) == ras_response.read(given)
