"""How the daemons of CUDA MPS are read."""

import os

import pytest

from nodetune.probe import processes


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(processes, "_SEEN", {})


def plant(tree, environ, uid="0"):
    name = "nvidia-cuda-mps-control"
    tree(
        {
            "/proc/1/comm": "systemd",
            "/proc/71/comm": name[:15],
            "/proc/71/cmdline": f"{name}\0-f\0",
            "/proc/71/status": f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n",
            "/proc/71/cgroup": "0::/system.slice/nodetune-mps.service\n",
            "/proc/71/environ": environ,
        }
    )


def test_a_daemon_tells_its_user_its_folder_and_its_unit(tree, collect):
    plant(tree, "PATH=/bin\0CUDA_MPS_PIPE_DIRECTORY=/run/mps\0")
    ours = {"pid": 71, "user": "root", "pipe_directory": "/run/mps", "unit": "nodetune-mps.service"}
    assert collect("mps", ["daemons"]) == {"mps.daemons": {"value": [ours]}}


def test_without_the_variable_it_is_nvidias_folder(tree, collect):
    plant(tree, "PATH=/bin\0", uid="54321")
    (found,) = collect("mps", ["daemons"])["mps.daemons"]["value"]
    assert (found["pipe_directory"], found["user"]) == ("/tmp/nvidia-mps", "54321")


def test_a_host_without_mps_has_none_and_a_hidden_one_is_unread(tree, collect):
    tree({"/proc/1/comm": "systemd"})
    assert collect("mps", ["daemons"]) == {"mps.daemons": {"value": []}}


@pytest.mark.skipif(os.geteuid() != 0, reason="changes the user")
def test_an_environment_that_is_hidden_is_unread(tree, collect):
    plant(tree, "")
    place = tree({}) / "proc/71/environ"
    place.unlink()
    place.mkdir()  # root may read any file: a folder is none
    assert "unread" in collect("mps", ["daemons"])["mps.daemons"]
