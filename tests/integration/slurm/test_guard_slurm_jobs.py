"""Jobs on sick and healthy nodes of a real Slurm, in both ways of acting: Slurm drains, or the guard does."""

import guarded
import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(guarded.missing()), reason=guarded.missing()),
]
LOST = "nodetune: gpu-lost: GPU0: NVML: GPU is lost"


@pytest.fixture(scope="module", params=["slurm", "drain"])
def cluster(request, parts):
    # A health check that drains would be faster than the jobs
    interval = 2 if request.param == "slurm" else 0
    with guarded.Guarded(parts, nodes=3, interval=interval, act=request.param) as started:
        yield started


@pytest.fixture(autouse=True)
def mended(cluster):
    cluster.mend()
    for node in cluster.nodes:
        (cluster.of_node(node) / guarded.RUN / "health.json").unlink(missing_ok=True)


def make_sick(cluster, node="n01"):
    cluster.control(node, "lost@0=1")


def wait_for_our_reason(cluster, node="n01", reason=LOST):
    cluster.wait_until(lambda: cluster.reason(node) == reason, f"{node} has our reason: {cluster.fields(node)}")


def look(cluster, node="n01"):
    """A health check next to those that slurmd starts, until one has seen that the node is sick."""
    environment = {"SLURMD_NODENAME": node, "SLURM_CONF": str(cluster.conf)}

    def seen():
        cluster.call(*cluster.inside(node), f"{guarded.HOME}/healthcheck", environment=environment)
        return '"verdict": "fail"' in cluster.left(node, "health.json")

    cluster.wait_until(seen, "the health check saw it")


def test_a_job_on_healthy_nodes_runs_with_a_verdict_everywhere(cluster):
    code, said = cluster.call("srun", "-N3", "--gres=gpu:1", "sh", "-c", "echo $SLURMD_NODENAME")
    assert code == 0, said
    assert sorted(said.split()) == cluster.nodes
    assert [cluster.inconclusive(node) for node in cluster.nodes] == [0, 0, 0]
    assert all(cluster.state(node).startswith(("IDLE", "COMP", "MIX")) for node in cluster.nodes)


def test_a_batch_job_of_a_failing_node_finishes_on_another(cluster):
    make_sick(cluster)
    job = cluster.batch()
    cluster.wait_for_drain("n01")
    wait_for_our_reason(cluster)
    assert cluster.job(job)["Priority"] != "0"
    assert cluster.job(job)["Restarts"] == "1"
    cluster.wait_for_job(job)
    assert "on n02" in cluster.output(job)


def test_arrays_and_multi_node_jobs_avoid_the_failing_node(cluster):
    cluster.control("n01", "lost@0=1", "lost@1=1")
    wide = cluster.batch("-N2", script="srun sh -c 'echo on $SLURMD_NODENAME'")
    array = cluster.batch("--array=0-2", f"--output={cluster.folder}/out-%A_%a")
    wait_for_our_reason(cluster, reason=LOST.replace("GPU0", "GPU0-1"))
    cluster.wait_for_job(wide)
    assert sorted(cluster.output(wide).split()) == ["n02", "n03", "on", "on"]
    for index in range(3):
        cluster.wait_until(lambda index=index: "on n0" in cluster.output(f"{array}_{index}"), f"task {index} ran")
        assert "on n01" not in cluster.output(f"{array}_{index}")


@pytest.mark.parametrize(
    "command",
    [
        ["srun", "--gres=gpu:1", "-w", "n01", "true"],
        ["salloc", "--gres=gpu:1", "-w", "n01", "srun", "true"],
    ],
    ids=["srun", "salloc"],
)
def test_a_job_without_requeue_fails_and_its_node_is_drained(cluster, command):
    make_sick(cluster)
    code, said = cluster.call(*command)
    assert code != 0
    assert "n01" in said or "revoked" in said, said
    wait_for_our_reason(cluster)


def test_a_job_without_requeue_is_cancelled_on_a_sick_node(cluster):
    make_sick(cluster)
    job = cluster.batch("--no-requeue", "-w", "n01")
    wait_for_our_reason(cluster)
    cluster.wait_for_job(job, "CANCELLED")
    assert cluster.output(job) == ""


def test_only_the_job_with_the_sick_gpu_is_kept_off(cluster):
    cluster.control("n01", "lost@1=1")
    first = cluster.batch("-w", "n01", script="sleep 3; echo on $SLURMD_NODENAME with $CUDA_VISIBLE_DEVICES")
    second = cluster.batch("-w", "n01")
    cluster.wait_for_drain("n01")
    cluster.wait_until(lambda: "GPU1" in cluster.reason("n01"), "the reason names the sick GPU")
    cluster.wait_for_job(first)
    assert cluster.output(first) == "on n01 with 0\n"
    assert cluster.job(second)["JobState"] == "PENDING"
    cluster.run("scancel", second)


def test_a_job_without_gpus_runs_where_a_gpu_is_sick(cluster):
    make_sick(cluster)
    code, said = cluster.call("srun", "-w", "n01", "true")
    assert code == 0, said


def test_an_administrators_own_drain_keeps_its_reason(cluster):
    cluster.run("scontrol", "update", "NodeName=n01", "State=DRAIN", "Reason=bad DIMM, ticket 4711")
    make_sick(cluster)
    look(cluster)
    assert cluster.reason("n01") == "bad DIMM, ticket 4711"


def test_a_failing_idle_node_is_drained_only_with_act_drain(cluster):
    make_sick(cluster)
    look(cluster)
    if cluster.settings["act"] == "drain":
        wait_for_our_reason(cluster)
    else:
        assert "DRAIN" not in cluster.state("n01")


def test_a_health_check_does_not_wait_for_one_that_is_at_work(cluster):
    command = ["flock", f"/{guarded.RUN}/health.lock", f"{guarded.HOME}/healthcheck"]
    code, said = cluster.call(*cluster.inside("n01"), *command, environment={"SLURMD_NODENAME": "n01"})
    assert (code, said) == (0, "nodetune: an earlier health check is still running\n")
