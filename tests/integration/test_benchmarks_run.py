"""Every benchmark runs, at its smallest size, and gives a figure of the right kind. How large a figure is says nothing here."""

# ruff: noqa: RUF001

import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import __main__ as every
from benchmarks.compare import CASES
from benchmarks.support import figures, measuring

ROOT = Path(__file__).parents[2]
RATIO = "{kind} # s, # s: # × (# to #)"
SHAPES = {
    "apply_beside_audit": {"apply_beside_audit": "# ×, # ×"},
    "agents": {"agents": "# bytes; # × an audit, # s"},
    "apply_beside_tasks": {"apply_beside_tasks": "# s, # ×; # ×, # ×"},
    "broken_logins": {"broken_logins": "2 of 2, 2 of 2; # s, # MiB"},
    "find_slow": {"find_slow": "# right, # wrong of #"},
    "fleet": {"fleet": "# of #; 0"},
    "guard_entry": {"guard_entry": "# ms, # ms; # ms"},
    "history_cost": {"history_cost": "# %, # %; #, # ms a host, # MB"},
    "history_growth": {"history_growth": "# B, # ms; # GB"},
    "kubernetes_nodes": {"kubernetes_nodes": "20 of 20 in # s, at most # a second; # a node and minute"},
    "logins_beside_ansible": {
        "logins_cpu": "# ms; `ansible -m setup` # ×, a testinfra script of ten sysctls # ×",
        "logins_wall": "# s; Ansible # ×, testinfra # ×",
    },
    "logins_by_number": {"logins_by_number": "# ms at 2; CPU # ×, wall # × (# s), # MiB"},
    "late_ranks": {"late_ranks": "0 of # healthy jobs; # right, # wrong of # planted"},
    "lying_hosts": {"lying_hosts": "8 of 8 whole; # s, # MiB"},
    "probe": {"probe": "# ms, # ×"},
    "report": {"report": "# s, # s; largest process # MiB, page # MB"},
    "settings_move_figures": {"settings_move_figures": "0 of 3"},
    "simulated_year": {"simulated_year": "# of #, median # days before; #"},
    "lemons": {"lemons": "a wrong name in # of # healthy fleets; # % named, # others of # names"},
    "status": {"status": "# s, # s, # s; # MiB"},
    "tuning_errors": {"tuning_errors": "0 accepted; found in 100.0 %"},
    "tuning_finds_best": {"tuning_finds_best": "tcp: too little time"},
}
"""Benchmark → its rows and their figures, with # for a number that depends on the machine."""
PRINTED = {
    "settings_move_figures": r"\| disk_files create \| mount option sync → async \| [\d.]+ \| [\d.]+ \| k/s \|",
    "tuning_finds_best": r"  screening: \w+=\w+",
}
"""Benchmark → what else it prints, where its figure says little at the smallest size."""

pytestmark = pytest.mark.timeout(600)


def recorded(file, *words):
    """What a benchmark records at its smallest, and what it prints."""
    command = [sys.executable, *words, "--smallest", "--record", file]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode == measuring.SKIPPED:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    return {row: each["figure"] for row, each in figures.rows(file).items()}, done.stdout


def has_shape(figure, shape):
    numbers = re.escape(shape).replace(r"\#", r"(-?[\d.,]+)")
    return re.fullmatch(numbers, figure)


def test_every_benchmark_has_the_shape_of_its_figures():
    assert sorted(SHAPES) == every.NAMES


@pytest.mark.parametrize("name", every.NAMES)
def test_a_benchmark_runs_at_its_smallest(name, tmp_path):
    found, printed = recorded(tmp_path / "figures.yml", f"benchmarks/{name}.py")
    assert found.keys() == SHAPES[name].keys()
    assert re.search(PRINTED.get(name, r"\d"), printed)
    for row, figure in found.items():
        assert has_shape(figure, SHAPES[name][row]), figure


def test_two_checkouts_are_compared_in_turn(tmp_path):
    found, _ = recorded(tmp_path / "figures.yml", "benchmarks/compare.py", str(ROOT))
    assert [*found] == [*CASES]
    shape = "; ".join(RATIO.format(kind=kind) for kind in ("CPU", "wall"))
    for figure in found.values():
        cpu, *_ = has_shape(figure, shape).groups()
        assert float(cpu) > 0
