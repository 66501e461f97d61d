"""The probe's supervisor: no collector can hang it, take the others with it, or pile up readers."""

import os
import re
import select
import signal
import subprocess
import sys
import textwrap
import time
import types

import pytest

from nodetune.probe import main


@pytest.fixture(autouse=True)
def no_guard(monkeypatch, tmp_path):
    """As on a host without the guard, whose lock only its own readers hold."""
    monkeypatch.setattr(main, "LOCK", str(tmp_path / "no-lock"))


@pytest.fixture
def family(monkeypatch):
    """family("name", collect) plants a collector that exists only in this test."""

    def plant(name, collect):
        module = types.ModuleType(f"nodetune.probe.{name}")
        module.collect = collect
        monkeypatch.setitem(sys.modules, module.__name__, module)

    return plant


def good(names, step):
    yield "fact", {"value": 0}


def blocked_reading_a_pipe(path):
    """A collector that never returns: open() of a pipe that nobody writes to blocks as a stuck /proc entry does."""

    def collect(names, step):
        yield "before", {"value": 1}
        step(f"reading {path}")
        with open(path) as pipe:
            yield "never", {"value": pipe.read()}

    return collect


def test_a_hanging_collector_is_named_and_the_others_go_on(family, monkeypatch, tmp_path):
    monkeypatch.setattr(main, "FAMILY_SECONDS", 0.3)
    os.mkfifo(tmp_path / "pipe")
    family("aaa", good)
    family("mmm", blocked_reading_a_pipe(tmp_path / "pipe"))
    family("zzz", good)
    found = main.probe({"aaa": [], "mmm": [], "zzz": []}, 10)
    assert found["facts"]["aaa.fact"] == found["facts"]["zzz.fact"] == {"value": 0}
    assert found["facts"]["mmm.before"] == {"value": 1}, "what was known before the hang is kept"
    assert found["failed"]["mmm"].endswith(f"in reading {tmp_path}/pipe")
    assert found["stuck"] == [], "it could be killed"


def test_a_collector_that_dies_costs_only_its_own_facts(family):
    def die(names, step):
        step("the driver call")
        os.kill(os.getpid(), signal.SIGKILL)
        yield "never", {}

    family("aaa", die)
    family("bbb", good)
    found = main.probe({"aaa": [], "bbb": []}, 10)
    assert found["failed"]["aaa"] == "the aaa collector died in the driver call"
    assert "bbb.fact" in found["facts"]


def test_a_reader_that_dies_before_its_first_family_costs_only_that_one(family, monkeypatch):
    collect_all = main._collect_all

    def die_at_first(families, *more):
        if families[0] == "aaa":
            os.kill(os.getpid(), signal.SIGKILL)
        collect_all(families, *more)

    monkeypatch.setattr(main, "_collect_all", die_at_first)
    family("aaa", good)
    family("bbb", good)
    found = main.probe({"aaa": [], "bbb": []}, 10)
    assert found["failed"] == {"aaa": "the aaa collector died"}
    assert list(found["facts"]) == ["bbb.fact"]


def test_a_collector_that_raises_is_reported_with_what_it_raised(family):
    def broken(names, step):
        yield "one", {"value": 1}
        raise KeyError("MemTotal")

    family("aaa", broken)
    found = main.probe({"aaa": []}, 10)
    assert found["facts"] == {"aaa.one": {"value": 1}}
    assert "KeyError('MemTotal')" in found["failed"]["aaa"]


def test_a_probe_ends_at_its_deadline_and_names_the_rest(family, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    family("aaa", blocked_reading_a_pipe(tmp_path / "pipe"))
    family("bbb", good)
    found = main.probe({"aaa": [], "bbb": []}, 0.5)
    assert "did not return" in found["failed"]["aaa"]
    assert found["failed"]["bbb"] == "not collected: the probe's time was over"


def test_a_leftover_reader_is_reported_and_stays_the_only_one(family, monkeypatch, tmp_path):
    monkeypatch.setattr(main, "ALONE_SECONDS", 1.0)
    monkeypatch.setattr(main, "ALONE", ("slowone",))
    ready = tmp_path / "ready"
    earlier = subprocess.Popen(
        [
            sys.executable,
            "-c",
            textwrap.dedent(f"""
        import time
        open("/proc/self/comm", "w").write("nodetune:slowone"[:15])
        open({str(ready)!r}, "w").close()
        time.sleep(60)
    """),
        ]
    )
    try:
        while not ready.exists():
            time.sleep(0.01)
        family("slowone", good)
        found = main.probe({"slowone": []}, 10)
        assert "slowone.fact" not in found["facts"]
        assert f"(process {earlier.pid}, " in found["failed"]["slowone"]
        assert "not starting another" in found["failed"]["slowone"]
    finally:
        earlier.kill()
        earlier.wait()
    assert "slowone.fact" in main.probe({"slowone": []}, 10)["facts"]


def test_two_probes_at_once_take_turns(family, monkeypatch, tmp_path):
    monkeypatch.setattr(main, "ALONE", ("turns",))

    def exclusive(names, step):
        handle = os.open(tmp_path / "inside", os.O_CREAT | os.O_EXCL)
        time.sleep(0.2)
        os.close(handle)
        os.unlink(tmp_path / "inside")
        yield "fact", {"value": True}

    family("turns", exclusive)
    pids = []
    for _ in range(6):
        pid = os.fork()
        if pid == 0:
            found = main.probe({"turns": []}, 10)
            os._exit(0 if found["facts"].get("turns.fact") else 1)
        pids.append(pid)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0] * 6


def test_children_hold_nothing_open_that_a_login_would_wait_for(tmp_path):
    """A stuck reader must not keep the SSH session (our standard output) open."""
    code = textwrap.dedent("""
        import os, sys, types
        from nodetune.onhost import worker
        from nodetune.probe import main
        module = types.ModuleType("nodetune.probe.aaa")
        def collect(names, step):
            import signal, time
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            worker.prctl(worker.PR_SET_PDEATHSIG, 0)  # no signal reaches one that is stuck in the kernel
            time.sleep(600)
            yield "x", {}
        module.collect = collect
        sys.modules[module.__name__] = module
        worker.Worker.end = lambda self: os.close(self.pipe)
        found = main.probe({"aaa": []}, 0.3)
        print(found["stuck"][0]["pid"], flush=True)
    """)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    os.kill(int(done.stdout), signal.SIGKILL)  # fails where communicate() returned after the stuck child's end


def slow_but_alive(seconds):
    """A collector that takes this long, as one does that waits for a CPU."""

    def collect(names, step):
        select.select([], [], [], seconds)
        yield "fact", {"value": 1}

    return collect


@pytest.mark.parametrize(("load", "known"), [(0.3, False), (1.0, False), (8.0, True), (1e9, True)])
def test_a_busy_host_gives_its_collectors_more_time(family, monkeypatch, load, known):
    monkeypatch.setattr(main, "FAMILY_SECONDS", 0.5)
    family("aaa", slow_but_alive(1.2))
    found = main.probe({"aaa": []}, 20, load=lambda: load)
    assert ("aaa.fact" in found["facts"]) is known, found


def test_a_hang_on_a_busy_host_ends_in_bounded_time(family, monkeypatch, tmp_path):
    monkeypatch.setattr(main, "FAMILY_SECONDS", 0.1)
    os.mkfifo(tmp_path / "pipe")
    family("aaa", blocked_reading_a_pipe(tmp_path / "pipe"))
    found = main.probe({"aaa": []}, 20, load=lambda: 1e9)
    within = re.match(r"did not return within ([\d.]+) s", found["failed"]["aaa"])
    assert float(within[1]) < 15


@pytest.mark.parametrize(
    ("seconds", "most", "load", "total"),
    [(20, 30, 1, 20), (20, 30, 1.2, 24), (20, 30, 4, 30), (20, 300, 1e9, 80), (20, 0, 4, 20), (10, 5, 4, 10)],
)
def test_the_whole_probe_stretches_within_what_it_is_given(seconds, most, load, total):
    assert main.total(seconds, most, main.stretch(lambda: load)) == pytest.approx(total)


@pytest.mark.parametrize(
    ("text", "cpus", "load"),
    [
        ("8.00 1.00 1.00 2/300 77", 4, 2.0),
        ("0.10 1.00 1.00 13/300 77", 4, 3.0),
        ("0.10 0.10 0.10 1/300 77", 4, 0.025),
        ("", 4, 0.0),
        ("nonsense", 4, 0.0),
    ],
)
def test_load_is_what_waits_for_each_cpu(monkeypatch, tmp_path, text, cpus, load):
    monkeypatch.setattr(main.read, "ROOT", str(tmp_path))
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/loadavg").write_text(text)
    assert main.load_per_cpu(cpus) == pytest.approx(load)


def test_a_host_that_does_not_tell_its_load_is_not_busy(monkeypatch, tmp_path):
    monkeypatch.setattr(main.read, "ROOT", str(tmp_path))
    assert main.load_per_cpu(4) == 0


def test_a_document_says_by_whom_and_how_long_the_probe_ran(family):
    family("aaa", good)
    about = main.document({"aaa": []}, 10)["about"]
    assert (about["uid"], about["interpreter"]) == (os.getuid(), sys.executable)
    assert about["python"] == ".".join(map(str, sys.version_info[:3]))
    assert 0 <= about["seconds"] < 3600 < about["time"], "a duration, and a time since 1970"
