"""Measurements started by srun of a real Slurm, whose nodes are all on this machine."""

import os
import shutil
import time
from pathlib import Path

import lab
import pytest

from nodetune import bundle, launch
from nodetune.transport.conversation import Ended

MEASUREMENTS = Path(__file__).parents[1] / "measurements"
LONG = 60.0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(lab.missing()), reason=lab.missing()),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with lab.Cluster(tmp_path_factory.mktemp("slurm"), nodes=3) as started:
        yield started


@pytest.fixture(autouse=True)
def payload(cluster, tmp_path, monkeypatch):
    """This process is a user of the cluster, and the payload has one more measurement in it (see tests/measurements)."""
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    folder = tmp_path / "verify"
    shutil.copytree(bundle.VERIFY, folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(MEASUREMENTS / "rendezvous.py", folder)
    monkeypatch.setattr(bundle, "VERIFY", folder)


def plan(name="rendezvous", seconds=LONG, env=None, **options):
    """`run` is empty: other tests may measure on this machine meanwhile."""
    return {"measurements": [{"name": name, "options": options, "seconds": seconds}], "env": env or {}, "run": ""}


def outcome(events):
    """Records and ends by host."""
    records, ends = {}, {}
    for host, event in events:
        if isinstance(event, Ended):
            ends[host] = event.problem
        elif "record" in event:
            records.setdefault(host, []).append(event["record"])
    return records, ends


def no_job_is_left(cluster):
    cluster.wait_until(lambda: not cluster.run("squeue", "--noheader").strip(), "no job is left")
    return True


def test_tasks_on_all_nodes_are_one_group_in_the_order_that_was_asked_for(cluster):
    hosts = ["n03", "n01", "n02"]
    records, ends = outcome(launch.measure(hosts, plan()))
    assert ends == dict.fromkeys(hosts)
    subjects = {host: sorted(record["subject"] for record in found) for host, found in records.items()}
    assert subjects == {"n03": ["rank 0", "rank 1"], "n01": ["rank 2", "rank 3"], "n02": ["rank 4", "rank 5"]}
    assert {record["about"]["identity"] for found in records.values() for record in found} == {f"{7:032x}"}
    assert no_job_is_left(cluster)


def test_a_step_inside_an_allocation_takes_no_other_nodes(cluster, monkeypatch):
    job = cluster.run("sbatch", "--parsable", "--nodes=2", "--nodelist=n01,n02", "--wrap=sleep 300").strip()
    try:
        cluster.wait_until(lambda: cluster.state("n02").startswith(("ALLOC", "MIX")), "the job runs")
        monkeypatch.setenv("SLURM_JOB_ID", job)
        monkeypatch.setenv("SLURM_JOB_NODELIST", "n[01-02]")
        assert launch.allocated() == ["n01", "n02"]
        records, ends = outcome(launch.measure(launch.allocated(), plan()))
        assert ends == {"n01": None, "n02": None}
        assert len(records["n01"]) == len(records["n02"]) == 2
    finally:
        cluster.run("scancel", job)
    assert no_job_is_left(cluster)


def test_what_tasks_tell_one_another_may_take_many_lines(cluster):
    releases = [os.urandom(6000).hex(), "2.28.9"]  # does not compress: five lines of the wire
    records, _ = outcome(launch.measure(["n01", "n02"], plan(releases=releases)))
    for host in ("n01", "n02"):
        assert releases[0][:1000] in records[host][0]["failed"]


def test_a_rank_that_is_killed_on_one_node_is_named_on_all(cluster):
    records, ends = outcome(launch.measure(["n01", "n02"], plan(ill={"1": "dies"}, env={"WAIT_FOR_THE_ILL": "1"})))
    assert ends == {"n01": None, "n02": None}
    assert "rank 3 on GPU1" in records["n02"][0]["failed"]
    assert records["n01"][0]["failed"].startswith("n02: rank 3 on GPU1")
    assert no_job_is_left(cluster)


def test_a_task_whose_process_is_killed_ends_as_dropped_and_the_others_are_told(cluster):
    events = launch.measure(["n01", "n02"], plan(env={"WAIT_FOR_THE_ILL": "1"}, ill={"0": "never comes"}))
    victim, ends, failed = None, {}, []
    for host, event in events:
        if isinstance(event, Ended):
            ends[host] = event.problem
        elif "begin" in event and host == "n02":
            victim = event["begin"]["pid"]
        elif "step" in event and host == "n02" and victim:
            os.kill(victim, 9)
            victim = None
        elif "record" in event:
            failed.append((host, event["record"]["failed"]))
    assert ends["n02"].state == "dropped"
    assert failed == [("n01", "n02: this host has gone")]
    assert no_job_is_left(cluster)


def test_closing_ends_every_process_of_the_step(cluster):
    events = launch.measure(["n01", "n02"], plan(ill={"0": "never comes", "1": "never comes"}))
    pids = set()
    for _, event in events:
        if "begin" in event:
            pids.add(event["begin"]["pid"])
        if len(pids) == 2 and "step" in event:
            break
    events.close()
    end = time.monotonic() + LONG
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert no_job_is_left(cluster)


def test_a_node_that_slurm_does_not_know_is_an_end_with_slurms_own_words(cluster):
    _, ends = outcome(launch.measure(["n01", "n99"], plan()))
    assert {host: problem.message for host, problem in ends.items()} == dict.fromkeys(
        ["n01", "n99"], "srun has ended: srun: error: Unable to allocate resources: Invalid node name specified"
    )


def test_a_node_without_that_python_is_told_as_such(cluster):
    _, ends = outcome(launch.measure(["n01"], plan(), python="python9"))
    assert ends["n01"].state == "no python"
    assert ends["n01"].message.endswith("is python3 (3.6 or newer) there?")


def test_without_srun_it_says_that_this_is_no_node_of_a_cluster(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    _, ends = outcome(launch.measure(["n01"], plan()))
    assert ends["n01"].message == "srun cannot be run: No such file or directory: is this a node of the cluster?"


def test_ranges_of_tasks_in_sruns_complaints_are_understood():
    assert launch.tasks("0,2-4,7") == [0, 2, 3, 4, 7]
    assert launch.tasks("nonsense") == []
