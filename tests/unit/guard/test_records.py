"""What the guard keeps: a pass, the marks on a shared folder, files that do not pile up."""

import json
import os
import socket
import threading
import time

import pytest

from nodetune.guard.node import cache, failure_limit, log, records
from nodetune.guard.node.invocation import Job
from nodetune.onhost import worker


@pytest.fixture
def run(tmp_path):
    folder = str(tmp_path / "run")
    records.prepare(folder)
    return folder


@pytest.fixture
def policy(tmp_path):
    path = tmp_path / "guard.json"
    path.write_text("{}")
    return str(path)


def job(gpus=None):
    return Job({"SLURM_JOB_ID": "7", **({"SLURM_JOB_GPUS": gpus} if gpus else {})})


def keep(run, policy, *passed, seconds=60.0):
    cache.keep(run, cache.stamp(os.stat(policy)), passed, seconds)


def test_a_pass_counts_for_the_gpus_that_passed_and_no_others(run, policy):
    keep(run, policy, "GPU0", "GPU2")
    assert cache.holds(run, policy, job("0"))
    assert cache.holds(run, policy, job("0,2"))
    assert not cache.holds(run, policy, job("0,1"))
    assert not cache.holds(run, policy, job())
    assert not cache.holds(run, policy, job("gpu:1")), "which GPUs it holds is not known"


def test_a_pass_ends_with_its_time_and_with_the_policy(run, policy):
    keep(run, policy, "node", seconds=0)
    assert not cache.holds(run, policy, job())
    keep(run, policy, "node")
    assert cache.holds(run, policy, job())
    os.utime(policy)
    assert not cache.holds(run, policy, job())


def test_a_pass_counts_for_as_many_seconds_as_it_was_given(run, policy, monkeypatch):
    keep(run, policy, "node", seconds=60)
    since = int(records.read(f"{run}/pass/node").split()[2])
    monkeypatch.setattr(cache, "_now", lambda: since + 59 * 10**9)
    assert cache.holds(run, policy, job())
    monkeypatch.setattr(cache, "_now", lambda: since + 60 * 10**9)
    assert not cache.holds(run, policy, job())


@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_a_pass_before_a_reboot_or_clock_jump_does_not_count(run, policy, at):
    keep(run, policy, "node")
    words = records.read(f"{run}/pass/node").split()
    words[at] = {0: "other", 1: "other", 2: str(10**20), 3: "1"}[at]
    records.write(f"{run}/pass/node", " ".join(words))
    assert not cache.holds(run, policy, job())


@pytest.mark.parametrize("content", ["", "x", "a b c d", "\0" * 100, "a b 1 2 3"])
def test_a_pass_that_cannot_be_read_does_not_count(run, policy, content):
    records.write(f"{run}/pass/node", content)
    assert not cache.holds(run, policy, job())


def test_a_pass_in_a_folder_that_others_may_write_does_not_count(run, policy):
    keep(run, policy, "node")
    os.chmod(run, 0o777)
    assert not cache.holds(run, policy, job())
    with pytest.raises(PermissionError, match="other users can write there"):
        records.prepare(run)


def test_the_epilog_clears_what_the_job_held(run, policy):
    keep(run, policy, "GPU0", "GPU1")
    cache.clear(run, ["GPU0", "GPU7"])
    assert not cache.holds(run, policy, job("0"))
    assert cache.holds(run, policy, job("1"))


def test_a_job_that_passes_again_gets_the_last_reading(run, policy):
    records.write(f"{run}/snap/last.json", "{}")
    keep(run, policy, "GPU0")
    assert cache.holds(run, policy, job("0"))
    assert records.read(f"{run}/snap/7.json") == "{}"


def test_folders_keep_the_newest_files_and_drop_partial_ones(tmp_path):
    for number in range(30):
        (tmp_path / f"{number}.json").write_text("x")
        os.utime(tmp_path / f"{number}.json", (number, number))
    (tmp_path / f"{records.WRITING}old-1").write_text("")
    os.utime(tmp_path / f"{records.WRITING}old-1", (1, 1))
    (tmp_path / f"{records.WRITING}new-1").write_text("")
    records.prune(str(tmp_path), 10)
    assert sorted(os.listdir(tmp_path)) == sorted(
        [*(f"{number}.json" for number in range(20, 30)), f"{records.WRITING}new-1"]
    )


def test_files_of_before_a_clock_was_set_back_go_first(tmp_path):
    ahead = time.time() + 86400
    for number in range(10):
        (tmp_path / f"old{number}").write_text("x")
        os.utime(tmp_path / f"old{number}", (ahead, ahead))
    (tmp_path / "new").write_text("x")
    records.prune(str(tmp_path), 5)
    assert "new" in os.listdir(tmp_path)
    assert len(os.listdir(tmp_path)) == 5


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path):
    records.write(str(tmp_path / "a"), "first")
    with pytest.raises(OSError, match="Is a directory"):
        records.write(str(tmp_path), "second")
    assert os.listdir(tmp_path) == ["a"]


# The cap


SECONDS = 300
"""More than a busy machine needs to look into a folder."""


def mark_all(shared, names, most):
    return [name for name in names if not failure_limit.why_not(str(shared), name, most, SECONDS)]


def test_the_cap_stops_at_its_number_and_says_so(tmp_path):
    assert mark_all(tmp_path, ["n01", "n02", "n03", "n04"], 2) == ["n01", "n02"]
    said = failure_limit.why_not(str(tmp_path), "n05", 2, SECONDS)
    assert said == f"2 nodes failed within an hour, but only 2 are allowed ({tmp_path}/failed)"
    assert sorted(os.listdir(tmp_path / "failed")) == ["n01", "n02"]


def test_a_node_counts_once_however_often_it_fails(tmp_path):
    assert mark_all(tmp_path, ["n01", "n01", "n01", "n02", "n01"], 2) == ["n01", "n01", "n01", "n02", "n01"]


def test_after_an_hour_a_node_no_longer_counts(tmp_path):
    assert mark_all(tmp_path, ["n01"], 1) == ["n01"]
    past = time.time() - 3601
    os.utime(tmp_path / "failed" / "n01", (past, past))
    assert mark_all(tmp_path, ["n02"], 1) == ["n02"]
    assert os.listdir(tmp_path / "failed") == ["n02"]


def test_marks_of_before_the_servers_clock_was_set_back_count(tmp_path):
    assert mark_all(tmp_path, ["n01", "n02"], 2) == ["n01", "n02"]
    ahead = time.time() + 1800
    for name in ("n01", "n02"):
        os.utime(tmp_path / "failed" / name, (ahead, ahead))
    assert mark_all(tmp_path, ["n03"], 2) == []


def test_of_many_nodes_at_once_no_more_than_the_cap_are_failed(tmp_path):
    allowed = []

    def fail(name):
        if not failure_limit._mark(str(tmp_path), name, 3):
            allowed.append(name)

    threads = [threading.Thread(target=fail, args=(f"n{number:02d}",)) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 <= len(allowed) <= 3, allowed
    assert sorted(os.listdir(tmp_path)) == sorted(allowed)


def test_a_file_on_the_shared_folder_switches_every_node_off(tmp_path):
    (tmp_path / "off").touch()
    assert failure_limit.why_not(str(tmp_path), "n01", 5, 20) == f"switched off by {tmp_path}/off"


def test_a_shared_folder_that_cannot_be_used_holds_no_job(tmp_path):
    (tmp_path / "failed").write_text("not a folder")
    assert "failed nodes cannot be counted" in failure_limit.why_not(str(tmp_path), "n01", 5, 20)


def test_a_shared_folder_that_hangs_holds_no_job(tmp_path):
    os.mkfifo(tmp_path / "pipe")

    def work(step):
        (tmp_path / "pipe").read_text()  # open() of a pipe that nobody writes to blocks as a dead file server does

    with pytest.raises(worker.NoAnswerError, match="did not answer within 0.3 s"):
        worker.ask(work, 0.3, "the folder")


def test_a_node_name_cannot_leave_the_folder(tmp_path):
    assert mark_all(tmp_path, ["../../evil"], 1) == ["../../evil"]
    assert os.listdir(tmp_path / "failed") == ["_.._evil"]


# Syslog


def test_the_log_line_is_one_datagram_with_json_behind_its_name(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as there:
        there.bind(str(tmp_path / "log"))
        log.log({"verdict": "fail", "reason": "naïve\n"}, str(tmp_path / "log"))
        line = there.recv(65536).decode()
    assert line.startswith("<27>nodetune-guard: {")
    assert "\n" not in line
    assert json.loads(line.partition(": ")[2]) == {"verdict": "fail", "reason": "naïve\n"}


def test_nobody_waits_for_a_log_that_is_full_or_gone(tmp_path):
    log.log({"verdict": "pass"}, str(tmp_path / "none"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as there:
        there.bind(str(tmp_path / "log"))
        for _ in range(2000):  # more than any queue holds; a call that waits would never end this test
            log.log({"verdict": "pass"}, str(tmp_path / "log"))
        assert there.recv(100).startswith(b"<30>nodetune-guard: ")
