"""A real Slurm whose guard is itself at fault, or whose driver or controller does not answer."""

import guarded
import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(guarded.missing()), reason=guarded.missing()),
]
HANG = "hang@0=nvmlDeviceGetTemperature:"


@pytest.fixture(scope="module")
def cluster(parts):
    with guarded.Guarded(parts, nodes=2, interval=2, seconds={"total": 40, "step": 4}) as started:
        yield started


@pytest.fixture(autouse=True)
def mended(cluster):
    for node in cluster.nodes:
        cluster.write_policy(node)
        cluster.write_scripts(node)
    cluster.mend()


def run_on(cluster, node):
    """A job with a GPU there: (exit code, what srun said)."""
    return cluster.call("srun", "--gres=gpu:1", "-w", node, "true")


def test_a_hanging_driver_drains_the_node_and_names_the_call(cluster):
    cluster.control("n01", f"{HANG}forever")
    code, _ = run_on(cluster, "n01")
    assert code
    cluster.wait_until(lambda: cluster.reason("n01").startswith("nodetune: nvml-not-answering"), "the reason is ours")
    assert "nvmlDeviceGetTemperature GPU0" in cluster.reason("n01")


def break_program(cluster):
    (cluster.of_node("n01") / guarded.HOME[1:] / "program").unlink()


def break_policy(cluster):
    (cluster.of_node("n01") / "policy" / "guard.json").write_text('{"schema": ')


def remove_policy(cluster):
    (cluster.of_node("n01") / "policy" / "guard.json").unlink()


BROKEN = {
    "the program is gone": break_program,
    "the policy is cut off": break_policy,
    "there is no policy": remove_policy,
    "there is no interpreter": lambda cluster: cluster.write_scripts("n01", python="/usr/bin/no-such-python3"),
    "the interpreter fails": lambda cluster: cluster.write_scripts("n01", python="/bin/false"),
    "the interpreter hangs": lambda cluster: cluster.write_scripts("n01", python="/bin/sleep 100 #", seconds=1),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_guard_lets_jobs_run_and_counts_as_inconclusive(cluster, fault):
    program = cluster.of_node("n01") / guarded.HOME[1:] / "program"
    cluster.control("n01", "lost@0=1")
    before = cluster.inconclusive("n01")
    BROKEN[fault](cluster)
    try:
        code, said = run_on(cluster, "n01")
        assert code == 0, said
        cluster.wait_until(lambda: cluster.inconclusive("n01") > before, "it was counted")
        assert "DRAIN" not in cluster.state("n01")
    finally:
        cluster.control("n01")
        if not program.is_symlink():
            program.symlink_to(cluster.parts / "program")


def test_a_drain_for_a_missing_script_is_not_the_guards(cluster):
    """Not even shortly after one that was."""
    cluster.control("n01", "lost@0=1")
    assert run_on(cluster, "n01")[0]
    cluster.wait_until(lambda: cluster.reason("n01").startswith("nodetune: gpu-lost"), "the first reason is ours")
    cluster.mend()
    (cluster.of_node("n01") / guarded.HOME[1:] / "prolog").unlink()
    code, _ = run_on(cluster, "n01")
    assert code
    cluster.wait_for_drain("n01")
    for _ in range(2):
        before = cluster.left("n01", "health.json")
        cluster.wait_until(
            lambda before=before: cluster.left("n01", "health.json") != before, "the health check looked"
        )
    assert cluster.reason("n01") == "Prolog error"


def test_observe_runs_jobs_on_a_sick_node_without_draining(cluster):
    cluster.write_policy("n01", mode="observe")
    cluster.control("n01", "lost@0=1")
    code, said = run_on(cluster, "n01")
    assert code == 0, said
    cluster.wait_until(lambda: "fail" in cluster.left("n01", "heartbeat"), "the finding is told")
    assert "DRAIN" not in cluster.state("n01")


def test_the_switch_turns_the_guard_off(cluster):
    (cluster.of_node("n01") / "policy" / "guard.off").touch()
    cluster.control("n01", "lost@0=1")
    try:
        code, said = run_on(cluster, "n01")
        assert code == 0, said
    finally:
        (cluster.of_node("n01") / "policy" / "guard.off").unlink()


def test_the_cap_stops_at_its_number(cluster):
    for node in cluster.nodes:
        cluster.write_policy(node, shared=str(cluster.shared), cap_nodes_per_hour=1)
        cluster.control(node, "lost@0=1")
    cluster.shared.mkdir()
    before = cluster.inconclusive("n02")
    assert run_on(cluster, "n01")[0]
    cluster.wait_for_drain("n01")
    code, said = run_on(cluster, "n02")
    assert code == 0, said
    assert cluster.inconclusive("n02") == before + 1
    assert "DRAIN" not in cluster.state("n02")


def test_a_controller_that_dies_during_the_prolog_drains_later(cluster):
    cluster.write_policy("n01", act="drain")
    cluster.control("n01", "lost@1=1", f"{HANG}0.8")
    job = cluster.batch("-w", "n01", "--gres=gpu:2")
    cluster.wait_until(lambda: cluster.job(job).get("JobState") == "RUNNING", "the prolog is at work")
    cluster.stop_controller()
    try:
        cluster.wait_until(lambda: cluster.left("n01", f"failed/{job}.json"), "the job is held")
    finally:
        cluster.start_controller()
    cluster.wait_for_drain("n01")
    cluster.wait_until(
        lambda: "gpu-lost: GPU1" in cluster.reason("n01"), f"the reason is ours: {cluster.fields('n01')}"
    )
    cluster.run("scancel", job)
