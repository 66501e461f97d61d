"""Draining and resuming through a real Slurm, by the code that runs on hosts."""

import subprocess
import sys
from pathlib import Path

import lab
import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "playbooks" / "module_utils"))

from nodetune_host import scheduler

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(lab.missing()), reason=lab.missing()),
]


@pytest.fixture(scope="module")
def cluster(place):
    with lab.Cluster(place) as started:
        yield started


@pytest.fixture(autouse=True)
def in_service(cluster):
    """Each test finds the node in service."""
    if "DRAIN" in cluster.state("n01"):
        cluster.run("scontrol", "update", "NodeName=n01", "State=RESUME")
    cluster.wait_until(lambda: cluster.state("n01") == "IDLE", "n01 is idle")


def test_a_node_in_service_makes_disruptive_changes_wait(cluster):
    assert "Slurm may start jobs here (n01 is IDLE)" in scheduler.in_service()


def test_only_the_run_that_drained_a_node_resumes_it(cluster):
    assert scheduler.drain("run-1") == (True, "")
    assert scheduler.in_service() == ""
    assert cluster.fields("n01")["Reason"].startswith("nodetune apply run-1 [root@")
    assert not scheduler.resume("run-2")
    assert "DRAIN" in cluster.state("n01")
    assert scheduler.resume("run-1")
    assert "DRAIN" not in cluster.state("n01")


def test_a_drain_repeated_after_an_interruption_can_be_resumed(cluster):
    assert scheduler.drain("run-1") == (True, "")
    assert scheduler.drain("run-1") == (True, "")


def test_a_drain_by_someone_else_keeps_its_reason(cluster):
    cluster.run("scontrol", "update", "NodeName=n01", "State=DRAIN", "Reason=bad DIMM, ticket 4711")
    assert scheduler.drain("run-1") == (False, "")
    assert not scheduler.resume("run-1")
    assert cluster.fields("n01")["Reason"].startswith("bad DIMM, ticket 4711")
    assert "DRAIN" in cluster.state("n01")


def test_a_running_job_is_waited_for_and_never_cut_off(cluster):
    job = subprocess.Popen(["srun", "-n1", "sleep", "60"], env=cluster.environment, stderr=subprocess.DEVNULL)
    try:
        cluster.wait_until(lambda: cluster.state("n01").startswith(("MIX", "ALLOC")), "the job runs")
        ours, busy = scheduler.drain("run-1")
        assert ours
        assert "Slurm jobs still run here" in busy
        assert job.poll() is None
    finally:
        job.terminate()
        job.wait(60)
    cluster.wait_until(lambda: scheduler.drain("run-1") == (True, ""), "the job has ended")


def test_a_slurm_that_does_not_answer_counts_as_in_service(cluster):
    content = cluster.conf.read_text()
    try:
        cluster.conf.write_text(content.replace(f"SlurmctldPort={cluster.port}", "SlurmctldPort=1"))
        assert "Slurm cannot be queried" in scheduler.in_service()
    finally:
        cluster.conf.write_text(content)
