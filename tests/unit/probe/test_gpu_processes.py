"""What the kernel grants the programs on GPUs."""

import os

from nodetune.probe import gpu_processes

STATUS = "Name:\tpython\nCapEff:\t{caps}\nCpus_allowed_list:\t0-3,8\n"
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
