"""Ranks of one host and of several: how they meet, and what is left when one of them does not come, dies or stops."""

import faulthandler
import os
import re
import resource
import shutil
import signal
import time
from pathlib import Path

import pytest

from nodetune.hosts.connection_options import ConnectionOptions, SessionOptions
from nodetune.hosts.target import Target
from nodetune.measurements.host import process_team
from nodetune.measurements.host.report import MeasurementError, SkipError
from nodetune.remote import payload
from nodetune.remote.live_pool import Ended
from nodetune.verify import remote

MEASUREMENTS = Path(__file__).parents[2] / "support" / "measurements"
LONG = 60.0


def gone(pid):
    end = time.monotonic() + LONG
    while process_team.state(pid) not in ("", "Z", "X"):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def says(*messages, then=lambda: None):
    def run(out, given):
        for kind, content in messages:
            out.send(kind, content)
        then()

    return run


def wait():
    time.sleep(LONG)


def listen(team, seconds=LONG):
    return list(team.events(time.monotonic() + seconds))


def test_members_messages_arrive_in_order_until_all_ended():
    runs = [("rank 0", says(("case", 1), ("case", 2))), ("rank 1", says(("case", 3)))]
    with process_team.Team(runs) as team:
        heard = listen(team)
    assert [content for number, kind, content in heard if (number, kind) == (0, "case")] == [1, 2]
    assert (1, "case", 3) in heard


def test_a_member_reads_what_it_is_sent():
    def run(out, given):
        out.send("case", given.readline().decode().strip())

    with process_team.Team([("rank 0", run)]) as team:
        team.members[0].send("c0ffee")
        assert (0, "case", "c0ffee") in listen(team)


def test_a_dead_member_is_named_with_its_step():
    die = says(("step", "all_reduce of 1 GiB"), then=lambda: os.kill(os.getpid(), signal.SIGKILL))
    with process_team.Team([("rank 0 on GPU0", says(then=wait)), ("rank 1 on GPU1", die)]) as team:
        with pytest.raises(
            MeasurementError,
            match=r"rank 1 on GPU1 \(process \d+\) was killed \(SIGKILL\); it was at: all_reduce of 1 GiB",
        ):
            listen(team)
        pids = [member.pid for member in team.members]
    assert all(gone(pid) for pid in pids)


def test_the_last_words_of_a_member_that_aborts_are_told():
    def aborts():
        faulthandler.disable()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.write(2, b"NCCL WARN first\nfree(): invalid pointer\n")
        os.abort()

    with (
        process_team.Team([("rank 0 on GPU0", says(("step", "all_reduce of 1 GiB"), then=aborts))]) as team,
        pytest.raises(
            MeasurementError, match=r"was killed \(SIGABRT\): free\(\): invalid pointer; it was at: all_reduce"
        ),
    ):
        listen(team)


def test_a_stopped_member_is_named_long_before_the_deadline():
    stop = says(("step", "ncclCommInitRank"), then=lambda: os.kill(os.getpid(), signal.SIGSTOP))
    start = time.monotonic()
    with (
        process_team.Team([("rank 0 on GPU0", says(then=wait)), ("rank 1 on GPU1", stop)]) as team,
        pytest.raises(
            MeasurementError, match=r"rank 1 on GPU1 \(process \d+\) is stopped; it was at: ncclCommInitRank"
        ),
    ):
        listen(team)
    assert time.monotonic() - start < LONG
    assert gone(team.members[1].pid)


def raise_fault(text, after=0.0):
    def run():
        time.sleep(after)
        raise MeasurementError(text)

    return run


def test_a_complaint_is_told_as_it_was_made():
    run = says(("step", "allocating"), then=raise_fault("GPU3: out of memory"))
    with (
        process_team.Team([("rank 3 on GPU3", run)]) as team,
        pytest.raises(MeasurementError, match=r"^rank 3 on GPU3: GPU3: out of memory; it was at: allocating$"),
    ):
        listen(team)


def test_the_member_that_died_is_blamed_not_the_one_that_lost_it():
    complain = says(("step", "all_reduce"), then=raise_fault("NCCL: remote process exited"))

    def die():
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)

    with (
        process_team.Team([("rank 0", complain), ("rank 1", says(("step", "all_reduce"), then=die))]) as team,
        pytest.raises(MeasurementError, match=r"^rank 1 \(process \d+\) was killed"),
    ):
        listen(team)


def test_messages_of_a_peer_come_before_their_effects():
    def elsewhere():
        raise MeasurementError("gpu2: rank 9 on GPU1 was killed")

    with (
        process_team.Team([("rank 0", says(then=raise_fault("NCCL: remote process exited")))], elsewhere) as team,
        pytest.raises(MeasurementError, match="^gpu2: rank 9"),
    ):
        listen(team)


def test_at_the_deadline_the_members_that_are_behind_are_named():
    ahead = says(("step", "loading"), ("step", "ncclCommInitRank"), then=wait)
    behind = says(("step", "loading"), then=wait)
    with (
        process_team.Team([("rank 0", ahead), ("rank 1", behind)]) as team,
        pytest.raises(MeasurementError, match=r"^not finished in time; rank 1 \(process \d+\) was at: loading$"),
    ):
        listen(team, 1.5)


def test_a_skip_ends_the_team_as_a_skip():
    def skip():
        raise SkipError("no libcuda here")

    with process_team.Team([("", says(then=skip))]) as team, pytest.raises(SkipError, match="^no libcuda here$"):
        listen(team)


def test_an_error_in_our_own_code_says_where():
    with (
        process_team.Team([("rank 0", says(then=lambda: 1 // 0))]) as team,
        pytest.raises(MeasurementError, match=r"rank 0: ZeroDivisionError.*test_verify_nccl_team.py:\d+"),
    ):
        listen(team)


# Between hosts


@pytest.fixture
def rendezvous(tmp_path, monkeypatch):
    """The payload with one more measurement in it (see tests/support/measurements)."""
    folder = tmp_path / "measurements"
    shutil.copytree(payload.MEASUREMENTS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(MEASUREMENTS / "rendezvous.py", folder)
    monkeypatch.setattr(payload, "MEASUREMENTS", folder)


def met(hosts, options, seconds=LONG, **env):
    """Records by host, of processes here that pose as hosts."""
    targets = [Target(name, connection="local") for name in hosts]
    plan = {
        "measurements": [{"name": "rendezvous", "options": options, "seconds": seconds}],
        "group": {"hosts": hosts},
        "env": env,
        "run": "",  # other tests may measure on this machine meanwhile
    }
    found = {name: [] for name in hosts}
    for target, event in remote.measure(
        targets, lambda _: plan, ConnectionOptions(options=SessionOptions(seconds=LONG))
    ):
        if isinstance(event, Ended):
            assert event.problem is None
        elif "record" in event:
            found[target.name].append(event["record"])
        elif "done" in event:
            assert event["done"]["left"] == []
    return found


def failures(found):
    return {name: [record["failed"] for record in records if "failed" in record] for name, records in found.items()}


@pytest.mark.parametrize("hosts", [["gpu1"], ["gpu1", "gpu2"], ["gpu1", "gpu2", "gpu3"]])
def test_every_rank_on_every_host_gets_the_first_ranks_id(rendezvous, hosts):
    records = [record for each in met(hosts, {}).values() for record in each]
    assert sorted(record["subject"] for record in records) == [f"rank {number}" for number in range(2 * len(hosts))]
    assert {record["about"]["identity"] for record in records} == {f"{7:032x}"}


def test_hosts_with_different_releases_of_nccl_do_not_begin(rendezvous):
    found = failures(met(["gpu1", "gpu2"], {"releases": ["2.28.9", "2.21.5"]}))
    text = "the hosts have different releases of NCCL, which may be incompatible: gpu1 has 2.28.9, gpu2 has 2.21.5"
    assert found == {"gpu1": [text], "gpu2": [text]}


@pytest.mark.parametrize(("ill", "words"), [("dies", r"was killed \(SIGKILL\)"), ("stops", "is stopped")])
def test_a_rank_that_is_lost_on_one_host_is_named_on_all(rendezvous, ill, words):
    found = failures(met(["gpu1", "gpu2"], {"ill": {"1": ill}}, WAIT_FOR_THE_ILL="1"))
    text = rf"rank 3 on GPU1 \(process \d+\) {words}; it was at: meeting"
    assert [len(each) for each in found.values()] == [1, 1]
    assert re.fullmatch(text, found["gpu2"][0])
    assert re.fullmatch("gpu2: " + text, found["gpu1"][0])


def test_a_missing_rank_is_named_at_the_deadline(rendezvous):
    found = failures(met(["gpu1", "gpu2"], {"ill": {"1": "never comes"}}, seconds=6))
    assert "rank 3 on GPU1" in found["gpu2"][0]
    assert "was at: preparing" in found["gpu2"][0]
    assert "gpu2" in found["gpu1"][0]
