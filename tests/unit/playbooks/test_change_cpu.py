"""Frequency and idle states of CPUs, over planted files; the machines of tests/machines have a real cpufreq driver."""

import json

import pytest
from nodetune_host.problem import ChangeError
from nodetune_host.resources import cpu


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Four CPUs with acpi-cpufreq's and cpuidle's files."""
    monkeypatch.setattr(cpu, "CPUS", str(tmp_path))
    for number in range(4):
        write(tmp_path / f"cpufreq/policy{number}/scaling_governor", "schedutil" if number else "ondemand")
        for state, latency in enumerate((0, 2, 170)):
            write(tmp_path / f"cpu{number}/cpuidle/state{state}/latency", latency)
            write(tmp_path / f"cpu{number}/cpuidle/state{state}/disable", 0)
    write(tmp_path / "cpufreq/boost", 0)
    return tmp_path


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def change(setting, value):
    return {"change": "cpu", "setting": setting, "value": value}


def apply(wish):
    before = cpu.read(wish)
    cpu.put(wish, cpu.wanted(wish, before))
    return before


def governors(tree):
    return [(tree / f"cpufreq/policy{number}/scaling_governor").read_text().strip() for number in range(4)]


def test_each_cpu_gets_back_the_governor_that_it_had(tree):
    wish = change("governor", "performance")
    before = apply(wish)
    assert before == {"cpufreq/policy*/scaling_governor": {"ondemand": "0", "schedutil": "1-3"}}
    assert set(governors(tree)) == {"performance"}
    assert cpu.wanted(wish, cpu.read(wish)) == cpu.read(wish)
    cpu.put(wish, before)
    assert governors(tree) == ["ondemand", "schedutil", "schedutil", "schedutil"]


def test_only_idle_states_that_take_longer_to_leave_are_closed(tree):
    wish = change("idle_latency_us", 99)
    before = apply(wish)
    closed = [(tree / f"cpu3/cpuidle/state{state}/disable").read_text().strip() for state in range(3)]
    assert closed == ["0", "0", "1"]
    cpu.put(wish, before)
    assert (tree / "cpu3/cpuidle/state2/disable").read_text() == "0"


@pytest.mark.parametrize(("path", "on", "off"), [("cpufreq/boost", "1", "0"), ("intel_pstate/no_turbo", "0", "1")])
def test_boost_is_the_file_that_the_driver_has(tree, path, on, off):
    write(tree / path, off)
    apply(change("boost", value=True))
    assert (tree / path).read_text() == on


def test_what_is_right_already_is_not_written(tree):
    apply(change("governor", "performance"))
    for number in range(4):
        (tree / f"cpufreq/policy{number}/scaling_governor").chmod(0o444)
    times = [(tree / f"cpufreq/policy{number}/scaling_governor").stat().st_mtime_ns for number in range(4)]
    apply(change("governor", "performance"))
    assert times == [(tree / f"cpufreq/policy{number}/scaling_governor").stat().st_mtime_ns for number in range(4)]


@pytest.mark.parametrize(
    ("setting", "value"), [("epp", "performance"), ("max_perf_pct", 100), ("idle_latency_us", 500)]
)
def test_what_the_host_does_not_have_is_one_line(tree, setting, value):
    with pytest.raises(ChangeError, match="not on this host"):
        cpu.read(change(setting, value))


@pytest.mark.parametrize(("setting", "value"), [("governor", 3), ("boost", "yes"), ("colour", "blue")])
def test_a_value_of_the_wrong_kind_is_refused(tree, setting, value):
    with pytest.raises(ChangeError, match="no setting of CPUs"):
        cpu.read(change(setting, value))


def test_the_diff_names_files_once_for_all_cpus(tree):
    wish = change("governor", "performance")
    assert cpu.show(wish, cpu.wanted(wish, cpu.read(wish))) == "cpufreq/policy0-3/scaling_governor: performance\n"


def test_at_boot_everything_that_can_be_set_is_and_the_rest_is_told(tree, capsys):
    file = tree / "cpu.conf"
    settings = {"boost": True, "epp": "performance", "governor": "performance", "idle_latency_us": 99}
    file.write_text(f"# by hand\n# settings: {json.dumps(settings)}\n")
    assert cpu.main(str(file)) == 1
    assert capsys.readouterr().err.startswith("nodetune: epp: ")
    assert set(governors(tree)) == {"performance"}
    assert (tree / "cpufreq/boost").read_text() == "1"
