"""`nodetune slow --ras`: which ranks of a running job are missing or behind, as NCCL's RAS service says."""

import json
import socket
import threading
from pathlib import Path

import pytest

from nodetune.foundation import schemas
from nodetune.foundation.request import RequestError
from nodetune.verify.slow import ras_answer, ras_client, ras_judge, run, words
from nodetune.verify.slow.request import PORT, SlowRequest, address
from tests.support import ras_server
from tests.support.commandline import nodetune

RECORDED = Path(__file__).parents[2] / "data" / "recordings" / "ras"
HEAD = """NCCL version 2.27.7 compiled with CUDA 12.9
CUDA runtime version 12090, driver version 13000

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      4          8            1         32       32

Communicators... (2.05s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
      0         1         4       7-8        32        32   RUNNING  {errors}

Errors
======

"""
WELL = HEAD.format(errors="OK") + "Warnings\n========\n\n"
LOST = (
    HEAD.format(errors="INCOMPLETE")
    + """INCOMPLETE
  Missing communicator data from 1 job process
  Process 3487984 on node 172.16.64.213 managing GPU 5

#0-0 (cf264af53edbe986) INCOMPLETE
  Missing communicator data from 1 rank
{rank}

Warnings
========

TIMEOUT
  Encountered 2 communication timeouts while gathering communicator data

"""
)
BEHIND = (
    HEAD.format(errors="MISMATCH")
    + """Warnings
========

#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different {kind} operation counts
  30 ranks have launched up to operation 6650
  Rank 9 has launched up to operation 6649 -- GPU 1 managed by process 483072 on node 172.16.64.210
  Rank 21 has not launched any operations -- GPU 5 (NVML 7) managed by process 483074 on node 172.16.64.212

"""
)
GROUPS = (
    HEAD.format(errors="MISMATCH")
    + """Warnings
========

#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different AllReduce operation counts
  30 ranks have launched up to operation 6650
  2 ranks have launched up to operation 6649
  Rank 0 -- GPU 0 managed by process 483072 on node 172.16.64.210
  Rank 2 -- [process information not found]

"""
)


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
    assert words.finding(only) == (
        "communicator 0xae94423cfbb2ef4a: rank 13 of 16 (10.0.0.2 GPU 5 process 1013): launched AllReduce up to 6; the others are at 7"
    )
    assert run.exit_code(status) == 1


def test_counts_that_grow_belong_to_a_job_that_runs():
    status, _ = asked(ras_server.answer([7] * 15 + [6]), ras_server.answer([9] * 15 + [8]))
    assert not status.findings
    assert status.notes == ("counts differ in 1 communicator that went on within 5 s: usual in a job that runs",)


def test_a_rank_that_is_alone_ahead_is_said_to_be_ahead():
    assert found(ras_server.answer([7] * 15 + [8])) == [("ahead", [15], "launched AllReduce 8, which 15 ranks did not")]


def test_a_rank_that_waits_in_another_collective_shows_in_both():
    seen = found(ras_server.answer([8] * 15 + [7], gathers={15: 5}))
    assert ("behind", [15], "launched AllReduce up to 7; the others are at 8") in seen
    assert ("ahead", [15], "launched AllGather 5, which 15 ranks did not") in seen


@pytest.mark.parametrize(("dead", "why"), [(False, "does not answer"), (True, "dead: unreachable for a minute")])
def test_a_rank_without_data_is_missing(dead, why):
    assert found(ras_server.answer([7] * 16, lost=[5], dead=dead)) == [("missing", [5], why)]


def test_an_error_of_a_rank_is_reported():
    assert found(ras_server.answer([7] * 16, errors={3: 6})) == [("error", [3], "remote process error")]


def test_a_job_in_which_all_have_launched_the_same_says_that_nobody_continues():
    status, _ = asked(ras_server.answer([7] * 16))
    assert status.notes[0].startswith("no rank launched anything within 5 s: all compute, or all are in a collective")


@pytest.mark.parametrize(
    "line",
    ["  The missing rank: 21", "  Rank 21 -- GPU 5 managed by process 3487984 on node 172.16.64.213"],
)
def test_a_missing_rank_is_read_from_the_text_of_older_versions(line):
    status, _ = asked(LOST.format(rank=line), json=False)
    assert status.version == "2.27.7"
    kinds = [(each.kind, [rank.rank for rank in each.ranks]) for each in status.findings]
    assert ("missing", [21]) in kinds
    assert any(rank.host == "172.16.64.213" and rank.gpu == "5" for each in status.findings for rank in each.ranks)
    assert "2 timeouts between the job's own processes while they were asked" in status.notes


@pytest.mark.parametrize("kind", ["AllReduce", "collective"])
def test_ranks_behind_are_read_from_the_text_of_older_versions(kind):
    assert found(BEHIND.format(kind=kind), json=False) == [
        ("behind", [21], f"launched no {kind}; the others are at 6650"),
        ("behind", [9], f"launched {kind} up to 6649; the others are at 6650"),
    ]


def test_groups_of_ranks_are_read_from_the_text():
    assert found(GROUPS, json=False) == [("behind", [0, 2], "launched AllReduce up to 6649; the others are at 6650")]


def test_a_text_without_errors_finds_nothing():
    status, _ = asked(WELL, json=False)
    assert not status.findings
    assert run.exit_code(status) == 0


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
    monkeypatch.setattr(ras_client, "MOST_BYTES", 1 << 16)
    status, _ = asked("x" * (1 << 20))
    assert status.problem == "the answer is larger than 64 KiB"


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
    with pytest.raises(ras_answer.UnreadableError):
        ras_answer.read(text)


@pytest.mark.parametrize(
    "communicators",
    [
        [5, None, {"hash": 3}, {"hash": "0x1", "ranks": 5, "missing_ranks": [3, {}]}],
        [{"hash": "0x1", "ranks": [{"rank": "x", "status": [], "collective_counts": {"AllReduce": -1}}, []]}],
        [{"hash": "0x1", "ranks": [{"rank": 1 << 70, "collective_counts": {"AllReduce": 1.5}}]}],
    ],
)
def test_hostile_json_does_no_harm(communicators):
    answer = ras_answer.read(json.dumps({"communicators": communicators, "ras": 3}))
    assert all(0 <= rank.rank < 1 << 63 for each in answer.communicators for rank in each.ranks)


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


@pytest.mark.parametrize("name", ["behind.json", "behind.txt"])
def test_a_real_job_whose_rank_1_has_stopped_before_a_collective(name):
    """NCCL 2.28.9 on two H200s."""
    answer = ras_answer.read((RECORDED / name).read_text())
    (only,) = ras_judge.judged("localhost", answer, answer, 5).findings
    (rank,) = only.ranks
    assert (only.kind, rank.rank, rank.host, rank.gpu, rank.pid) == (ras_judge.BEHIND, 1, "gpu001", "1", 1393)
    assert only.why == "launched AllReduce up to 403; the others are at 404"


def test_a_real_job_whose_rank_0_is_stopped_and_whose_rank_2_sleeps():
    """NCCL 2.28.9 on four H200s."""
    answer = ras_answer.read((RECORDED / "stopped.json").read_text())
    found = ras_judge.judged("localhost", answer, answer, 5)
    assert [(each.kind, [rank.rank for rank in each.ranks]) for each in found.findings] == [
        (ras_judge.MISSING, [0]),
        (ras_judge.BEHIND, [2]),
    ]
    assert not found.notes


def test_a_real_job_whose_rank_1_does_not_answer():
    answer = ras_answer.read((RECORDED / "stopped.txt").read_text())
    (only,) = ras_judge.judged("localhost", answer, answer, 5).findings
    assert (only.kind, [rank.rank for rank in only.ranks], only.why) == (ras_judge.MISSING, [1], ras_answer.NO_DATA)


def test_a_missing_rank_is_read_although_nccl_leaves_out_a_comma():
    given = ras_server.answer([7] * 16, lost=[3])
    wrong = given.replace(
        '"nvml_dev": 3,\n          "status": {\n            "unresponsive"',
        '"nvml_dev": 3\n          "status": {\n            "unresponsive"',
    )
    assert wrong != given
    assert ras_answer.read(wrong) == ras_answer.read(given)
