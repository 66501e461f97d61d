"""Which processes use the GPUs of a host, as the facts of an audit tell it."""

import pytest

from nodetune.api.facts_view import FactUnreadError
from nodetune.api.model import Absent, Each, HostFacts, Unread, Value
from nodetune.audit import gpu_users


def host(*processes, **more):
    on_gpus = Each({"GPU0": Value(list(processes)), "GPU1": Value([])})
    facts = {"gpu.nvml": Value("13"), "gpu.compute_running_processes": on_gpus}
    return HostFacts("gpu1", {**facts, "gpu.mps_compute_running_processes": Absent("no MPS"), **more})


def process(pid, name="python3"):
    return {"pid": pid, "name": name}


@pytest.mark.parametrize(
    ("processes", "told"),
    [
        ([], ""),
        ([process(7)], "python3 (7)"),
        ([process(7), process(7)], "python3 (7)"),
        ([process(7, ""), process(8, "a\x1bb")], "a\\x1bb (8), process (7)"),
        ([process(pid) for pid in (1, 2, 3)], "python3 (1), python3 (2), python3 (3)"),
        ([process(pid) for pid in (1, 2, 3, 4, 5)], "python3 (1), python3 (2), python3 (3) and 2 more"),
    ],
)
def test_up_to_three_processes_are_named_once_each(processes, told):
    assert gpu_users.users(host(*processes)) == told
    assert gpu_users.busy(host(*processes)) == (f"waits until these no longer use a GPU: {told}" if told else "")


def test_a_host_without_nvml_has_no_user_of_a_gpu():
    assert gpu_users.users(host(process(7), **{"gpu.nvml": Absent("no library")})) == ""


@pytest.mark.parametrize("fact", [Unread("timed out"), Each({"GPU0": Value(7)}), Each({"GPU0": Value([7])})])
def test_what_cannot_be_known_is_no_idle_gpu(fact):
    found = host(**{"gpu.compute_running_processes": fact})
    with pytest.raises(FactUnreadError, match="unknown whether a process uses a GPU"):
        gpu_users.users(found)
    assert gpu_users.busy(found).startswith("unknown whether a process uses a GPU")


@pytest.mark.parametrize(
    ("fact", "there"),
    [
        (Value({"slurmd": 1}), True),
        (Value({"slurmd": 0}), False),
        (Value({}), False),
        (Unread("no"), False),
        (Value(7), False),
    ],
)
def test_a_host_is_in_slurm_if_slurmd_runs_there(fact, there):
    assert gpu_users.in_slurm(host(**{"services.processes": fact})) is there
