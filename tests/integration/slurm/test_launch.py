"""Measurements started by srun of a real Slurm, whose nodes are all on this machine."""

import os
import shutil
import subprocess
from pathlib import Path

import lab
import pytest

from nodetune.hosts.connection_options import ConnectionOptions
from nodetune.hosts.target import Target
from nodetune.remote import payload as remote_payload
from nodetune.remote.live_pool import Ended
from nodetune.verify import slurm

MEASUREMENTS = Path(__file__).parents[2] / "support" / "measurements"
LONG = 60.0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(lab.missing()), reason=lab.missing()),
]


@pytest.fixture(scope="module")
def cluster(place):
    with lab.Cluster(place, nodes=3, apart=True) as started:
        yield started


@pytest.fixture(autouse=True)
def payload(cluster, tmp_path, monkeypatch):
    """This process is a user of the cluster, and the payload has one more measurement in it (see tests/support/measurements)."""
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    folder = tmp_path / "measurements"
    shutil.copytree(remote_payload.MEASUREMENTS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(MEASUREMENTS / "rendezvous.py", folder)
    monkeypatch.setattr(remote_payload, "MEASUREMENTS", folder)


def plan(name="rendezvous", seconds=LONG, env=None, together=(), **options):
    """`run` is empty: other tests may measure on this machine meanwhile."""
    measurements = [{"name": name, "options": options, "seconds": seconds}]
    group = {"group": {"hosts": list(together)}} if together else {}
    return {"measurements": measurements, "env": env or {}, "run": "", **group}


def started(plans, python="python3"):
    """Plans by host, started by srun."""
    return slurm.measure(
        [Target(host, python=python) for host in plans], lambda each: plans[each.name], ConnectionOptions()
    )


def together(*hosts, **options):
    """One plan for all of them, as one group."""
    return started(dict.fromkeys(hosts, plan(together=hosts, **options)))


def outcome(events):
    """Records and ends by host."""
    records, ends = {}, {}
    for target, event in events:
        if isinstance(event, Ended):
            ends[target.name] = event.problem
        elif "record" in event:
            records.setdefault(target.name, []).append(event["record"])
    return records, ends


def subjects(records):
    return {host: sorted(record["subject"] for record in found) for host, found in records.items()}


def on(cluster, node, *command):
    """Whether a command on a node succeeds."""
    return subprocess.run([*cluster.inside(node), *map(str, command)], stderr=subprocess.DEVNULL).returncode == 0


def measuring_on(nodes):
    """Commands that succeed while something measures there."""
    return [(node, "pgrep", "-f", "exec.f.readline") for node in nodes]


def no_job_is_left(cluster):
    cluster.wait_until(lambda: not cluster.run("squeue", "--noheader").strip(), "no job is left")
    return True


def test_tasks_of_all_nodes_form_one_group_in_the_order_given(cluster):
    hosts = ["n03", "n01", "n02"]
    records, ends = outcome(together(*hosts))
    assert ends == dict.fromkeys(hosts)
    assert subjects(records) == {"n03": ["rank 0", "rank 1"], "n01": ["rank 2", "rank 3"], "n02": ["rank 4", "rank 5"]}
    assert {record["about"]["identity"] for found in records.values() for record in found} == {f"{7:032x}"}
    assert no_job_is_left(cluster)


def test_hosts_without_a_group_measure_alone_in_one_step():
    records, ends = outcome(started(dict.fromkeys(["n01", "n02", "n03"], plan())))
    assert ends == dict.fromkeys(["n01", "n02", "n03"])
    assert subjects(records) == {host: ["rank 0", "rank 1"] for host in ends}


def test_hosts_with_own_plans_and_groups_share_a_step_separately():
    pair = plan(together=["n03", "n01"])
    records, ends = outcome(started({"n01": pair, "n02": plan(env={"WAIT_FOR_THE_ILL": "1"}, seconds=6), "n03": pair}))
    assert ends == dict.fromkeys(["n01", "n02", "n03"])
    assert subjects({host: records[host] for host in ("n01", "n03")}) == {
        "n03": ["rank 0", "rank 1"],
        "n01": ["rank 2", "rank 3"],
    }
    assert "not finished in time" in records["n02"][0]["failed"]


def test_a_plan_with_a_host_that_is_not_in_the_run_is_refused():
    with pytest.raises(ValueError, match="n01 should measure with n02, which is not in this run"):
        list(started({"n01": plan(together=["n01", "n02"])}))


def test_a_step_inside_an_allocation_takes_no_other_nodes(cluster, monkeypatch):
    job = cluster.run(
        "sbatch", "--parsable", "--nodes=2", "--nodelist=n01,n02", "--output=/dev/null", "--wrap=sleep 300"
    ).strip()
    try:
        cluster.wait_until(lambda: cluster.state("n02").startswith(("ALLOC", "MIX")), "the job runs")
        monkeypatch.setenv("SLURM_JOB_ID", job)
        monkeypatch.setenv("SLURM_JOB_NODELIST", "n[01-02]")
        assert slurm.allocated() == ["n01", "n02"]
        records, ends = outcome(together(*slurm.allocated()))
        assert ends == {"n01": None, "n02": None}
        assert len(records["n01"]) == len(records["n02"]) == 2
    finally:
        cluster.run("scancel", job)
    assert no_job_is_left(cluster)


def test_what_tasks_tell_one_another_may_take_many_lines(cluster):
    releases = [os.urandom(6000).hex(), "2.28.9"]  # does not compress: a dozen lines of the wire
    records, _ = outcome(together("n01", "n02", releases=releases))
    for host in ("n01", "n02"):
        assert releases[0][:100] in records[host][0]["failed"]


def test_a_rank_that_is_killed_on_one_node_is_named_on_all(cluster):
    records, ends = outcome(together("n01", "n02", ill={"1": "dies"}, env={"WAIT_FOR_THE_ILL": "1"}))
    assert ends == {"n01": None, "n02": None}
    assert "rank 3 on GPU1" in records["n02"][0]["failed"]
    assert records["n01"][0]["failed"].startswith("n02: rank 3 on GPU1")
    assert no_job_is_left(cluster)


def test_a_killed_task_is_dropped_and_the_others_learn_it(cluster):
    events = together("n01", "n02", env={"WAIT_FOR_THE_ILL": "1"}, ill={"0": "never comes"})
    victim, ends, failed = None, {}, []
    for target, event in events:
        host = target.name
        if isinstance(event, Ended):
            ends[host] = event.problem
        elif "begin" in event and host == "n02":
            victim = event["begin"]["pid"]
        elif "step" in event and host == "n02" and victim:
            on(cluster, "n02", "kill", "-9", victim)
            victim = None
        elif "record" in event:
            failed.append((host, event["record"]["failed"]))
    assert (ends["n02"].state, ends["n02"].message) == ("dropped", "its task ended (Killed)")
    assert (failed, ends["n01"]) == ([("n01", "n02: this host has gone")], None)
    assert no_job_is_left(cluster)


def test_closing_ends_every_process_of_the_step(cluster):
    events = together("n01", "n02", ill={"0": "never comes", "1": "never comes"})
    pids = {}
    for target, event in events:
        if "begin" in event:
            pids[target.name] = event["begin"]["pid"]
        if len(pids) == 2 and "step" in event:
            break
    assert all(on(cluster, node, "kill", "-0", pid) for node, pid in pids.items())
    events.close()
    cluster.wait_until(lambda: not any(on(cluster, *each) for each in measuring_on(pids)), "nothing is left")
    assert no_job_is_left(cluster)


def test_an_unknown_node_ends_with_the_message_of_slurm(cluster):
    _, ends = outcome(together("n01", "n99"))
    assert {host: problem.message for host, problem in ends.items()} == dict.fromkeys(
        ["n01", "n99"], "srun has ended: srun: error: Unable to allocate resources: Invalid node name specified"
    )


def test_a_node_without_that_python_is_told_as_such(cluster):
    _, ends = outcome(started({"n01": plan()}, python="python9"))
    assert ends["n01"].state == "no python"
    assert ends["n01"].message.endswith("is python3 (3.6 or newer) installed there?")


def test_without_srun_it_says_that_this_is_no_node_of_a_cluster(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    _, ends = outcome(together("n01"))
    assert ends["n01"].message == "srun cannot be run: No such file or directory: is this a node of the cluster?"
