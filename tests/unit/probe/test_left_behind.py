"""What ended programs and kernels left behind: files in /dev/shm, zombies, records of panics."""

import os
import time

import pytest

NAMES = ["zombies", "shm", "panics"]
INIT = {"/proc/1/comm": "systemd", "/proc/1/status": "State:\tS (sleeping)\nUid:\t0\t0\t0\t0\n"}


@pytest.fixture
def shm(tree, monkeypatch):
    """Plant files in /dev/shm, each with its owner."""
    real = os.lstat

    def plant(owners, files=()):
        root = tree({**INIT, **dict.fromkeys(owners, "x" * 5000), **dict(files)})

        def owned(path, **more):
            status = real(path, **more)
            uid = owners.get(str(path)[len(str(root)) :])
            return (
                status if uid is None else os.stat_result((*status[:4], uid, *status[5:10]), status.__reduce__()[1][1])
            )

        monkeypatch.setattr(os, "lstat", owned)
        return root

    return plant


def test_files_count_whose_owner_runs_nothing(shm, collect):
    shm(
        {"/dev/shm/a": 1001, "/dev/shm/torch/deep/b": 1001, "/dev/shm/c": 1002, "/dev/shm/d": 0, "/dev/shm/e": 1003},
        {
            "/proc/7/status": "State:\tR (running)\nUid:\t1002\t1002\t1002\t1002\n",
            "/proc/8/status": "State:\tS (sleeping)\nUid:\t1003\t0\t0\t0\n",
        },
    )
    left = collect("leftovers", NAMES)["leftovers.shm"]["value"]
    assert list(left) == ["1001"], "root, and people with a process of either user, left nothing"
    assert left["1001"]["files"] == 2
    assert left["1001"]["bytes"] >= 10000


def test_zombies_are_counted(tree, collect):
    zombie = "Name:\tpython\nState:\tZ (zombie)\nUid:\t1000\t1000\t1000\t1000\n"
    tree({**INIT, "/proc/7/status": zombie, "/proc/8/status": zombie, "/proc/self/status": zombie})
    assert collect("leftovers", NAMES)["leftovers.zombies"] == {"value": 2}


def test_hidden_processes_leave_zombies_and_files_unread(shm, collect):
    root = shm({"/dev/shm/a": 1001})
    (root / "proc/1/comm").unlink()
    facts = collect("leftovers", NAMES)
    assert "hides" in facts["leftovers.zombies"]["unread"]
    assert "hides" in facts["leftovers.shm"]["unread"]
    assert facts["leftovers.panics"] == {"value": []}


def test_panics_are_those_that_nobody_asked_for(tree, collect):
    record = "Panic#1 Part1\n<0>[  712.1] Kernel panic - not syncing: "
    root = tree(
        {
            **INIT,
            "/sys/fs/pstore/dmesg-efi_pstore-1": record + "Fatal hardware error!\n<4>Hardware name: x\n",
            "/sys/fs/pstore/console-ramoops-0": record + "Fatal exception\n",
            "/var/lib/systemd/pstore/17/001/dmesg.txt": record + "Fatal exception in interrupt\n",
            "/var/lib/systemd/pstore/18/dmesg.txt": record + "sysrq triggered crash\n",
            "/var/lib/systemd/pstore/19/dmesg.txt": "Oops#1 Part1\n<1>[ 9.1] BUG: kernel NULL pointer dereference\n",
        }
    )
    day_ago = time.time() - 86400
    os.utime(root / "var/lib/systemd/pstore/17/001/dmesg.txt", (day_ago, day_ago))
    old, new = collect("leftovers", NAMES)["leftovers.panics"]["value"]
    assert (old["file"], old["text"]) == ("/var/lib/systemd/pstore/17/001/dmesg.txt", "Fatal exception in interrupt")
    assert old["age_s"] >= 86400
    assert new["text"] == "Fatal hardware error!"
