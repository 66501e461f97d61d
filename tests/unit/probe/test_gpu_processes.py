"""What the kernel grants the programs on GPUs."""

import os

import pytest

from nodetune.probe import gpu_processes

STATUS = "Name:\tpython\nCapEff:\t{caps}\nCpus_allowed_list:\t0-3,8\nMems_allowed_list:\t0-1\n"
LIMITS = "Limit  Soft Limit  Hard Limit  Units\nMax locked memory  {soft}  unlimited  bytes\n"


def users(**pids):
    return {gpu: {"value": [{"pid": pid} for pid in its]} for gpu, its in pids.items()}


def test_a_program_is_told_once_with_its_gpus_and_limits(tree):
    tree({"/proc/7/status": STATUS.format(caps="0000000000000000"), "/proc/7/limits": LIMITS.format(soft=8388608)})
    assert gpu_processes.settings(users(GPU1=[7], GPU0=[7, 9])) == {
        "value": {
            "7": {
                "name": "python",
                "gpus": ["GPU0", "GPU1"],
                "cpus": "0-3,8",
                "mems": "0-1",
                "policy": None,
                "memlock": "8388608",
                "may_lock": False,
                "shm_bytes": None,
            }
        }
    }


def test_a_capability_lets_a_program_lock_any_memory(tree):
    tree({"/proc/7/status": STATUS.format(caps="00000000a80465fb"), "/proc/7/limits": LIMITS.format(soft="unlimited")})
    assert gpu_processes.settings(users(GPU0=[7]))["value"]["7"]["may_lock"] is True


def test_dev_shm_is_that_of_the_programs_own_root(tree):
    root = tree({"/proc/7/status": STATUS.format(caps="0")})
    (root / "proc/7/root").symlink_to("/")
    seen = os.statvfs("/dev/shm")
    expected = seen.f_blocks * seen.f_frsize if os.path.ismount("/dev/shm") else None
    assert gpu_processes.settings(users(GPU0=[7]))["value"]["7"]["shm_bytes"] == expected


def test_without_programs_there_is_nothing_to_tell(tree):
    tree({"/proc/": None})
    assert gpu_processes.settings({"GPU0": {"value": []}, "GPU1": {"unread": "NVML: GPU is lost"}}) == {"value": {}}


@pytest.mark.parametrize(
    "policy",
    [
        "default",
        "local",
        "bind:1",
        "bind=static|relative:0-1,3",
        "prefer:0",
        "prefer (many):0-1",
        "interleave:0-1",
        "weighted interleave:0-1",
    ],
)
def test_the_memory_policy_is_that_of_the_first_mapping(tree, policy):
    maps = (
        f"5587c1153000 {policy} file=/usr/bin/python3.12 mapped=3 N0=3 kernelpagesize_kB=4\n5587c1156000 bind:7 heap\n"
    )
    tree({"/proc/7/status": STATUS.format(caps="0"), "/proc/7/numa_maps": maps})
    assert gpu_processes.settings(users(GPU0=[7]))["value"]["7"]["policy"] == policy


def test_this_kernel_says_the_policy_of_a_process_in_so_few_bytes():
    if not os.path.exists("/proc/self/numa_maps"):
        pytest.skip("this kernel has no NUMA")
    assert gpu_processes.settings(users(GPU0=[os.getpid()]))["value"][str(os.getpid())]["policy"] is not None
