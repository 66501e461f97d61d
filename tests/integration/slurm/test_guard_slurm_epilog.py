"""What jobs leave behind in a real Slurm, what goes wrong while they run, and what their tasks find in the environment."""

import copy
import dataclasses
import json
import subprocess

import guarded
import pytest

from nodetune.config import profile
from nodetune.guard.deploy import policy as policies
from nodetune.guard.node import epilog
from nodetune.guard.node import leftover_processes as left_behind
from nodetune.guard.node.invocation import Job

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(guarded.missing()), reason=guarded.missing()),
]
LEAVE = """
setsid -f sh -c 'touch /run/nodetune-nvml/gpu0/processes/$$; exec sleep 600' &
while [ -z "$(ls /run/nodetune-nvml/gpu0/processes)" ]; do :; done
"""
XID = "3,77,{},-;NVRM: Xid (PCI:0000:00:06): 119, pid=1, Timeout after 6s of waiting for RPC response from GPU0 GSP!\n"


@pytest.fixture(scope="module")
def cluster(parts):
    with guarded.Guarded(
        parts, nodes=1
    ) as started:  # a health check would soon write its own heartbeat over an epilog's
        yield started


@pytest.fixture(autouse=True)
def mended(cluster):
    cluster.write_policy("n01")
    cluster.mend()
    gpu = cluster.of_node("n01") / "run" / "nodetune-nvml" / "gpu0" / "processes"
    gpu.mkdir(parents=True, exist_ok=True)
    gpu.chmod(0o777)
    for left in gpu.iterdir():
        left.unlink()


def epilog_of(cluster, job):
    """The heartbeat tells that it has ended."""
    cluster.wait_until(lambda: f" {job} epilog: " in cluster.left("n01", "heartbeat"), f"the epilog of {job} ran")


def strays(cluster):
    words = [*cluster.inside("n01"), "pgrep", "-x", "sleep"]
    return cluster.call(*words)[1].split()


def test_a_process_left_on_a_gpu_is_named_and_left_alone(cluster):
    job = cluster.batch("--uid=nobody", "--output=/dev/null", script=LEAVE)
    cluster.wait_for_job(job)
    cluster.wait_until(lambda: "epilog: fail" in cluster.left("n01", "heartbeat"), "the epilog found it")
    assert len(strays(cluster)) == 1
    assert "DRAIN" not in cluster.state("n01")
    cluster.call(*cluster.inside("n01"), "pkill", "-x", "sleep")


def test_a_policy_may_have_such_processes_killed(cluster):
    cluster.write_policy("n01", kill_strays=True)
    job = cluster.batch("--uid=nobody", "--output=/dev/null", script=LEAVE)
    cluster.wait_for_job(job)
    cluster.wait_until(lambda: not strays(cluster), "it is gone")
    cluster.mend()


def test_a_gpu_lost_during_a_job_drains_the_node_in_the_epilog(cluster):
    job = cluster.batch(script="echo lost@0=1 >> /run/nodetune-nvml/control")
    cluster.wait_for_drain("n01")
    environment = {"SLURMD_NODENAME": "n01", "SLURM_CONF": str(cluster.conf)}
    cluster.call(*cluster.inside("n01"), f"{guarded.HOME}/healthcheck", environment=environment)
    assert cluster.reason("n01") == "nodetune: gpu-lost: GPU0: NVML: GPU is lost"
    assert cluster.job(job)["JobState"] == "COMPLETED"


def test_a_job_that_ends_on_healthy_gpus_leaves_nothing(cluster):
    code, said = cluster.call("srun", "-Q", "--gres=gpu:1", "sh", "-c", "echo $SLURM_JOB_ID")
    assert code == 0, said
    epilog_of(cluster, said.strip())
    assert "epilog: pass" in cluster.left("n01", "heartbeat")
    run = cluster.of_node("n01") / guarded.RUN
    assert not list((run / "snap").glob(f"{said.strip()}.json"))
    assert not (run / "pass" / "GPU0").exists()


def test_only_xids_newer_than_the_start_of_the_job_count(cluster):
    """With the kernel log and the PCI bus of another machine."""
    place = cluster.of_node("n01") / "run"
    log, bus = place / "kmsg", place / "pci"
    log.write_text(XID.format(1_000_000))
    for device in ("0000:00:06.0", "0000:00:07.0"):
        (bus / device).mkdir(parents=True, exist_ok=True)
        for name, content in (("vendor", "0x10de"), ("class", "0x030200"), ("device", "0x2335")):
            (bus / device / name).write_text(f"{content}\n")
    inside = cluster.inside("n01")
    cluster.call(*inside, "mount", "--bind", "/run/kmsg", "/dev/kmsg")
    cluster.call(*inside, "mount", "--bind", "/run/pci", "/sys/bus/pci/devices")
    try:
        resolved = profile.resolve(profile.named(["training"]))
        gating = dataclasses.replace(resolved, gates=frozenset({"gpu-xid-hardware"}))
        made = policies.make(gating, "n01", {**cluster.settings, "act": "drain", "off": []})
        observing = json.dumps({**made, "mode": "observe"})
        policy = cluster.of_node("n01") / "policy" / "guard.json"
        policy.write_text(observing)  # the old error would hold the job
        code, said = cluster.call("srun", "-Q", "--gres=gpu:1", "sh", "-c", "echo $SLURM_JOB_ID")
        assert code == 0, said
        epilog_of(cluster, said.strip())
        assert "epilog: pass" in cluster.left("n01", "heartbeat")
        job = cluster.batch(script=f"printf '%s\\n' '{XID.format(2_000_000).strip()}' >> /run/kmsg")
        epilog_of(cluster, job)
        assert "epilog: fail" in cluster.left("n01", "heartbeat")
    finally:
        cluster.call(*inside, "umount", "/dev/kmsg", "/sys/bus/pci/devices")


def test_tasks_get_threads_for_their_cpus_and_policy_settings(cluster):
    cluster.write_policy("n01", lambda data: data.update(environment={"NCCL_IB_HCA": "mlx5_0", "NCCL_DEBUG": "WARN"}))
    show = "echo $OMP_NUM_THREADS $MKL_NUM_THREADS $NCCL_IB_HCA $NCCL_DEBUG"
    environment = {**cluster.environment, "NCCL_DEBUG": "INFO"}
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        environment.pop(name, None)
    code, said = cluster.call("srun", "-Q", "-n1", "-c2", "sh", "-c", show, environment=environment)
    assert (code, said.strip()) == (0, "2 2 mlx5_0 INFO")
    code, said = cluster.call(
        "srun", "-Q", "-n1", "-c2", "sh", "-c", show, environment={**environment, "OMP_NUM_THREADS": "7"}
    )
    assert (code, said.strip()) == (0, "7 mlx5_0 INFO")


def test_a_step_gets_its_own_number_of_threads(cluster):
    job = cluster.batch("-n2", "-c1", script="echo $OMP_NUM_THREADS; srun -n1 -c2 sh -c 'echo $OMP_NUM_THREADS'")
    cluster.wait_for_job(job)
    assert cluster.output(job).split() == ["1", "2"]


def test_no_task_fails_for_its_prolog(cluster):
    cluster.write_scripts("n01", python="/bin/false")
    try:
        code, said = cluster.call("srun", "true")
        assert code == 0, said
    finally:
        cluster.write_scripts("n01")


def test_counters_are_compared_only_if_read_before_the_job():
    def names(before, known=()):
        return [check["id"] for check in epilog.watched(known, before)]

    assert names({}) == ["gpu-in-use"]
    before = {"gpu.ecc_uncorrected_volatile": {}, "xid.events": {}, "xid.fallen_off_bus": {}}
    assert "nvlink-errors" not in names(before)
    assert {"gpu-in-use", "gpu-ecc-uncorrected", "gpu-xid-hardware"} <= set(names(before))
    assert "nvlink-errors" in names({**before, "gpu.nvlink_errors": {}})
    assert "gpu-in-use" not in names(before, known={"gpu-in-use"})


def test_only_what_is_on_the_jobs_own_gpus_is_its_leftover():
    with subprocess.Popen(["sleep", "60"]) as left:
        process = {"pid": left.pid, "uid": 0}
        facts = {left_behind.COMPUTE: {"each": {"GPU0": {"value": []}, "GPU1": {"value": [process]}}}}
        before = copy.deepcopy(facts)
        job = Job({"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "1"})
        assert left_behind.of_job(facts, job, 0, lambda gpu: gpu == "GPU1", 0) == ([left.pid], facts)
        pids, others = left_behind.of_job(facts, job, 0, lambda gpu: gpu == "GPU0", 0)
        assert (pids, others[left_behind.COMPUTE]["each"]["GPU1"]) == ([], {"value": []})
        assert facts == before, "whether the node is idle is judged by all of them"
        left.kill()
