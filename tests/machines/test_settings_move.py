"""Figures of `verify` with settings wrong and right, in turn, on a machine that is an NFS server of its own and has NVMe drives.

The rows that `pytest -s` prints are those of nodetune/data/measured.yml. Under emulation a figure says nothing of hardware: that it
moves does.
"""

import os
from functools import partial

import click
import pytest
import yaml

from nodetune.verify.compare import BETTER
from tests.machines.suite import ROOT
from tests.machines.test_remaining_fixes import NFSD

RUNS = 5
THERE = "/root/tree"
FIRST = -20
"""The machine's CPUs before whatever else works here, which would hide the differences."""
LIBRARIES = (click, yaml)
"""What the benchmark imports; the machine's Python has none of them."""


@pytest.fixture(scope="module")
def bench(fleet):
    """bench(case): metric → status, of the benchmark that ran on the machine."""
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, FIRST)
    try:
        (made,) = fleet(1)
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, usual)
    made.ssh(f"mkdir -p {THERE}")
    for source in (ROOT / "nodetune", ROOT / "benchmarks", *(each.__path__[0] for each in LIBRARIES)):
        made.put(source, THERE)
    made.ssh(NFSD)
    made.ssh("for cpu in 2 3 4 5 6 7; do echo 0 > /sys/devices/system/cpu/cpu$cpu/online; done")
    yield partial(of_benchmark, made)
    fleet.stop(made)


def of_benchmark(machine, name):
    asked = f"cd {THERE} && PYTHONPATH=. python3 -m benchmarks.settings_move_figures --runs {RUNS} {name}"
    said = machine.ssh(asked, timeout=3000).stdout
    print(said)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in said.splitlines() if line.startswith("| ")]
    return {cells[0]: cells[-1] for cells in rows[2:]}


def test_options_of_an_nfs_mount_move_small_files_and_streams(bench):
    found = bench("nfs_options")
    assert {name: found[name] for name in ("disk_files stat", "disk_buffered read")} == {
        "disk_files stat": BETTER,
        "disk_buffered read": BETTER,
    }


def test_access_times_move_the_reading_of_small_files(bench):
    assert bench("access_times") == {"disk_files open": BETTER}


def test_a_scheduler_of_an_nvme_drive_is_measured(bench):
    assert set(bench("nvme_scheduler")) == {"disk random_read"}
