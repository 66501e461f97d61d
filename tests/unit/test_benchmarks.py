"""What holds of all benchmarks without running them: their help, their rows in the tables, how a figure is recorded."""

import importlib
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import __main__ as every
from benchmarks.support import figures, synthetic_fleet
from nodetune.api.model import Absent

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", [*every.NAMES, "compare"])
def test_the_help_of_a_benchmark_is_one_paragraph(name):
    command = importlib.import_module(f"benchmarks.{name}").main
    asked = CliRunner().invoke(command, ["--help"], terminal_width=1000)
    assert asked.exit_code == 0
    assert "--smallest" in asked.output and "--record" in asked.output
    assert re.fullmatch(r"[A-Z][^\n]{80,}\.", command.help)


def test_every_benchmark_has_a_command_in_the_table():
    words = [shlex.split(row["command"]) for row in figures.rows().values()]
    assert {Path(each[1]).stem for each in words if each[1].startswith("benchmarks/")} == set(every.NAMES)
    assert all((ROOT / each[1]).is_file() for each in words if each[1].startswith("benchmarks/"))


def test_the_table_has_each_measured_figure_with_date_and_machine():
    lines = (ROOT / "docs" / "project" / "benchmarks.md").read_text("utf-8").splitlines()
    measured = [row for row in figures.rows().values() if "figure" in row]
    assert len(measured) >= 15
    for row in measured:
        ending = f"| {row['figure']} | `{row['command']}` | {row['date']} | {row['machine']} |"
        assert f"| {row['what']} {ending}" in lines


def test_the_readme_has_four_figures_with_date_and_machine():
    lines = re.findall(
        r"^- \*\*.+$", (ROOT / "README.md").read_text("utf-8").partition("<!-- figures -->")[2], re.MULTILINE
    )
    shown = [row for row in figures.rows().values() if "readme" in row]
    assert len(lines) == len(shown) == 4
    for line, row in zip(lines, shown, strict=True):
        assert re.search(r"\*\*(.+?)\*\*", line)[1] in row["figure"]
        assert line.endswith(f"({row['machine']}, {row['date']})")


def test_a_new_figure_changes_its_own_row_and_says_when_and_where(tmp_path):
    file, before = tmp_path / "figures.yml", figures.rows()
    file.write_bytes(figures.FILE.read_bytes())
    figures.record({"fleet": "1 of 2; 3"}, file)
    after = figures.rows(file)
    assert list(after) == list(before)
    assert {name: row for name, row in after.items() if row != before[name]}.keys() == {"fleet"}
    assert after["fleet"]["figure"] == "1 of 2; 3"
    assert after["fleet"]["date"] >= before["verify_quick"]["date"]
    assert re.fullmatch(r"(.+, )?\d+ cores, .+, Python 3\.\d+", after["fleet"]["machine"])


def test_a_host_without_the_fact_gets_no_planted_difference():
    for name, plant in synthetic_fleet.PLANTS.items():
        assert plant({}) is False, name
        assert plant(dict.fromkeys(("memory.modules", "services.irqbalance", "host.os"), Absent("no file"))) is False


@pytest.mark.parametrize("base", [facts for _, facts in synthetic_fleet.machines()], ids=lambda base: base.host)
def test_every_difference_is_planted_or_refused_on_every_machine(base):
    planted = {name: plant(dict(base.facts)) for name, plant in synthetic_fleet.PLANTS.items()}
    assert set(planted.values()) <= {True, False}
    assert sum(planted.values()) > len(planted) / 2


def test_without_a_size_the_names_of_the_benchmarks_are_shown():
    asked = CliRunner().invoke(every.main, [])
    assert asked.exit_code == 2
    assert all(name in asked.output for name in every.NAMES)
