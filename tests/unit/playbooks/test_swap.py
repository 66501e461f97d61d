"""Swap goes off and comes back with its priority, on this machine's kernel with a swap file of the test's own."""

import os
import subprocess

import pytest
from nodetune_host.problem import ChangeError
from nodetune_host.resources import swap

pytestmark = pytest.mark.xdist_group("swap")  # each looks at all that the machine swaps on

OFF = {"change": "swap", "active": False}
SBIN = os.environ | {"PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}


@pytest.fixture
def area(tmp_path):
    """A swap file in use, with a blank in its name, above all that the machine has of its own."""
    path = tmp_path / "swap area"
    path.write_bytes(bytes(8 << 20))
    path.chmod(0o600)
    subprocess.run(["mkswap", path], check=True, env=SBIN, stdout=subprocess.DEVNULL)
    if os.geteuid() or subprocess.run(["swapon", "-p", "7", path], env=SBIN, capture_output=True).returncode:
        pytest.skip("this machine does not allow swap on a file")
    yield str(path)
    subprocess.run(["swapoff", path], env=SBIN, capture_output=True)


def in_use():
    """As an independent witness sees it: {name: priority}."""
    command = ["swapon", "--show=NAME,PRIO", "--noheadings", "--raw"]
    rows = subprocess.run(command, env=SBIN, capture_output=True, text=True, check=True).stdout.splitlines()
    return {row.rsplit(" ", 1)[0].replace("\\x20", " "): int(row.rsplit(" ", 1)[1]) for row in rows}


def test_swap_goes_off_and_comes_back_with_its_priority(area):
    """Only the test's own area: what else the machine swaps on stays."""
    before = swap.read(OFF)
    assert {"device": area, "type": "file", "priority": 7} in before
    swap.put(OFF, [each for each in before if each["device"] != area])
    assert area not in in_use()
    swap.put(OFF, before)
    assert in_use()[area] == 7
    assert swap.read(OFF) == before


def test_a_priority_that_the_kernel_chose_is_left_to_it_again(area):
    subprocess.run(["swapoff", area], env=SBIN, check=True)
    subprocess.run(["swapon", area], env=SBIN, check=True)
    before = swap.read(OFF)
    assert {"device": area, "type": "file", "priority": -1} in before
    swap.put(OFF, [each for each in before if each["device"] != area])
    swap.put(OFF, before)
    assert in_use()[area] < 0
    assert swap.read(OFF) == before


def test_a_swap_device_that_is_gone_is_a_problem_that_names_it(tmp_path):
    missing = str(tmp_path / "gone")
    with pytest.raises(ChangeError, match=missing):
        swap.put(OFF, [*swap.read(OFF), {"device": missing, "type": "partition", "priority": 1}])


def test_more_swap_than_free_memory_is_refused_before_any_change(area, tmp_path, monkeypatch):
    memory = tmp_path / "meminfo"
    memory.write_text("MemAvailable:    2048 kB\nSwapTotal:      8192 kB\nSwapFree:       4096 kB\n")
    monkeypatch.setattr(swap, "MEMORY", str(memory))
    with pytest.raises(ChangeError, match="4 MiB are swapped out and only 2 MiB of memory are free"):
        swap.put(OFF, [each for each in swap.read(OFF) if each["device"] != area])
    assert area in in_use()


def test_no_swap_is_what_is_wanted():
    assert swap.wanted(OFF, [{"device": "/dev/sda2", "type": "partition", "priority": -1}]) == []
