"""Frequency and idle states of CPUs, over planted files; the machines of tests/machines have a real cpufreq driver."""

import json
import shutil

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
    with pytest.raises(ChangeError, match="unknown CPU setting"):
        cpu.read(change(setting, value))


def test_the_diff_names_files_once_for_all_cpus(tree):
    wish = change("governor", "performance")
    assert cpu.show(wish, cpu.wanted(wish, cpu.read(wish))) == "cpufreq/policy0-3/scaling_governor: performance\n"


def test_at_boot_all_that_can_be_set_is_and_the_rest_is_told(tree, capsys):
    file = tree / "cpu.conf"
    settings = {"boost": True, "epp": "performance", "governor": "performance", "idle_latency_us": 99}
    file.write_text(f"# by hand\n# settings: {json.dumps(settings)}\n")
    clock = Clock()
    assert cpu.main(str(file), clock.now, clock.sleep) == 1
    assert capsys.readouterr().err.startswith("nodetune: epp: ")
    assert set(governors(tree)) == {"performance"}
    assert (tree / "cpufreq/boost").read_text() == "1"


class Clock:
    """Time that passes only while somebody sleeps; `then` maps a second to what happens in it."""

    def __init__(self, then=None):
        self.time, self.then = 0, then or {}

    def now(self):
        return self.time

    def sleep(self, seconds):
        self.time += seconds
        self.then.get(self.time, lambda: None)()


@pytest.fixture
def governor_at_boot(tree):
    """The settings file of a host whose driver of CPU frequencies is not there yet."""
    shutil.rmtree(tree / "cpufreq")
    file = tree / "cpu.conf"
    file.write_text('# settings: {"governor": "performance"}\n')
    return str(file)


def driver(tree, *cpus):
    return lambda: [write(tree / f"cpufreq/policy{cpu}/scaling_governor", "schedutil") for cpu in cpus]


def test_at_boot_a_driver_that_comes_late_is_waited_for(tree, governor_at_boot, capsys):
    clock = Clock({5: driver(tree, 0, 1), 6: driver(tree, 2, 3)})
    assert cpu.main(governor_at_boot, clock.now, clock.sleep) == 0
    assert set(governors(tree)) == {"performance"}
    assert clock.time < 10
    assert capsys.readouterr().err == ""


def test_at_boot_a_driver_that_never_comes_is_told_in_time(governor_at_boot, capsys):
    clock = Clock()
    assert cpu.main(governor_at_boot, clock.now, clock.sleep) == 1
    assert clock.time == cpu.LATE_SECONDS
    assert capsys.readouterr().err == "nodetune: governor: cpufreq/policy*/scaling_governor: not on this host\n"


def test_at_boot_nothing_is_waited_for_where_all_is_right(tree):
    apply(change("governor", "performance"))
    (tree / "cpu.conf").write_text('# settings: {"governor": "performance"}\n')
    clock = Clock()
    assert cpu.main(str(tree / "cpu.conf"), clock.now, clock.sleep) == 0
    assert clock.time == 0
