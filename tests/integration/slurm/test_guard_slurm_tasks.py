"""What a task prolog sets on a node of two sockets, 16 cores and two threads a core each: CPU n and CPU n + 32 are one core."""

import json
import os

import pytest

from nodetune.guard.node import taskprolog

SOCKETS = ([*range(16), *range(32, 48)], [*range(16, 32), *range(48, 64)])
EIGHT = [*range(8), *range(32, 40)]
"""The CPUs of eight cores of the first socket."""


@pytest.fixture
def topology(tmp_path):
    for cpu in range(64):
        folder = tmp_path / "cpu" / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{cpu % 32},{cpu % 32 + 32}\n")
    for number, text in enumerate(("0-15,32-47", "16-31,48-63")):
        (tmp_path / "node" / f"node{number}").mkdir(parents=True)
        (tmp_path / "node" / f"node{number}" / "cpulist").write_text(f"{text}\n")
    return str(tmp_path)


def given(topology, cpus, policy="/nowhere", **environment):
    found = taskprolog.settings({name: str(value) for name, value in environment.items()}, str(policy), topology, cpus)
    found.pop(taskprolog.OURS, None)
    return found


def threads(count, **more):
    return {"OMP_NUM_THREADS": str(count), "MKL_NUM_THREADS": str(count), **more}


def test_a_bound_task_gets_a_thread_per_core_and_places(topology):
    assert given(topology, EIGHT, SLURM_CPUS_PER_TASK=16) == threads(8, OMP_PLACES="cores")


def test_a_task_with_shared_cpus_gets_threads_but_no_places(topology):
    whole = [*SOCKETS[0], *SOCKETS[1]]
    tasks = {"SLURM_CPUS_ON_NODE": 64, "SLURM_STEP_TASKS_PER_NODE": "8(x2)", "SLURM_NODEID": 1}
    assert given(topology, whole, **tasks) == threads(4)
    assert given(topology, whole, **{**tasks, "SLURM_STEP_TASKS_PER_NODE": "8,2"}) == threads(16)


def test_processes_of_a_task_with_several_gpus_share_its_cpus(topology):
    whole = [*SOCKETS[0], *SOCKETS[1]]
    job = {"SLURM_CPUS_PER_TASK": 64, "CUDA_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7"}
    assert given(topology, whole, **job) == threads(4)


def test_a_task_with_one_gpu_stays_in_its_numa_node_unpinned(topology):
    whole = [*SOCKETS[0], *SOCKETS[1]]
    assert given(topology, whole, SLURM_CPUS_PER_TASK=64, CUDA_VISIBLE_DEVICES="0") == threads(16)
    assert given(topology, whole, SLURM_CPUS_PER_TASK=64) == threads(32, OMP_PLACES="cores")


def test_what_the_user_has_set_stays(topology):
    assert given(topology, EIGHT, SLURM_CPUS_PER_TASK=16, OMP_NUM_THREADS=3) == {}
    pinned = given(topology, EIGHT, SLURM_CPUS_PER_TASK=16, OMP_PROC_BIND="spread")
    assert pinned == threads(8)
    kept = given(topology, EIGHT, SLURM_CPUS_PER_TASK=16, MKL_NUM_THREADS=1)
    assert kept == {"OMP_NUM_THREADS": "8", "OMP_PLACES": "cores"}


def test_what_the_batch_steps_prolog_set_is_not_the_users(topology):
    first = taskprolog.settings({"SLURM_CPUS_PER_TASK": "16"}, "/nowhere", topology, EIGHT)
    step = {**first, "SLURM_CPUS_PER_TASK": "4"}
    assert given(topology, [0, 1, 32, 33], **step) == threads(2, OMP_PLACES="cores")
    step["OMP_NUM_THREADS"] = "5"
    assert "OMP_NUM_THREADS" not in given(topology, [0, 1, 32, 33], **step)


def test_the_policy_adds_settings_except_the_users_own(topology, tmp_path):
    policy = tmp_path / "guard.json"
    wanted = {"NCCL_IB_HCA": "mlx5_0", "NCCL_ALGO": "Ring", "bad name": "x", "NCCL_BAD": "two\nlines"}
    policy.write_text(json.dumps({"environment": wanted}))
    (tmp_path / ".nccl.conf").write_text("NCCL_ALGO=Tree\n")
    found = given(topology, EIGHT, policy, OMP_NUM_THREADS=1, HOME=tmp_path)
    assert found == ({"NCCL_IB_HCA": "mlx5_0"} if os.geteuid() == 0 else {})


def test_a_policy_that_others_may_write_sets_nothing(topology, tmp_path):
    policy = tmp_path / "guard.json"
    policy.write_text(json.dumps({"environment": {"LD_PRELOAD": "/tmp/x"}}))
    policy.chmod(0o666)
    assert given(topology, EIGHT, policy, OMP_NUM_THREADS=1) == {}


@pytest.mark.parametrize(
    "policy", ["", "[]", '{"environment": 3}', '{"environment": {"A": 1}}', '"environment"{', "\0"]
)
def test_no_policy_is_bad_enough_to_fail(topology, tmp_path, policy, capfd):
    path = tmp_path / "guard.json"
    path.write_text(policy)
    taskprolog.main([str(path)])
    assert "Traceback" not in "".join(capfd.readouterr())
