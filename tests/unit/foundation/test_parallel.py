"""Several processes say what one would, and what becomes of one costs only what it had not said yet."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from nodetune.audit import auditor
from nodetune.audit.selection import Selection, comparing
from nodetune.facts import document as facts_document
from nodetune.facts.saved import Saved
from nodetune.foundation import UserError, parallel, paths

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="works in one process elsewhere")


def each_doubled(part):
    for number in part:
        yield number, number * 2


def test_all_is_yielded_once_whatever_the_number_of_processes():
    for count in (1, 2, 5):
        assert sorted(parallel.spread(parallel.parts(range(50), count), each_doubled)) == [
            (n, n * 2) for n in range(50)
        ]


def test_what_a_process_yields_several_times_is_one_object_here():
    shared = ["a finding"]

    def work(part):
        for _ in part:
            yield {"found": shared}

    first, second, third = parallel.spread([[1, 2, 3]], work)
    assert first["found"] is second["found"] is third["found"]


def test_a_process_that_dies_costs_only_what_it_had_not_said():
    def work(part):
        for number in part:
            if number == 6:
                os.kill(os.getpid(), signal.SIGKILL)
            yield number

    assert sorted(parallel.spread([[1, 2, 3], [4, 5, 6, 7]], work)) == [1, 2, 3, 4, 5]


def test_what_goes_wrong_in_a_process_is_raised_here():
    def work(part):
        yield part[0]
        raise OSError(28, "No space left on device", "/full/x")

    running = parallel.spread([[1]], work)
    assert next(running) == 1
    with pytest.raises(OSError, match="No space left on device: '/full/x'"):
        next(running)


def test_closing_ends_every_process_and_what_it_holds_open(tmp_path):
    def work(part):
        try:
            yield part[0]
            time.sleep(600)
        finally:
            (tmp_path / str(part[0])).touch()

    running = parallel.spread([[1], [2]], work)
    assert {next(running), next(running)} == {1, 2}
    running.close()
    assert {each.name for each in tmp_path.iterdir()} == {"1", "2"}


def test_processes_end_when_nobody_listens_any_more(tmp_path):
    code = f"""
import os
from nodetune.foundation import parallel as spread
def work(part):
    open({str(tmp_path)!r} + f"/{{os.getpid()}}", "w").close()
    while True:
        yield "x" * 100_000
told = spread.spread([[1], [2]], work)
while len(os.listdir({str(tmp_path)!r})) < 2:
    next(told)
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    children = [int(each.name) for each in tmp_path.iterdir()]
    assert len(children) == 2
    end = time.monotonic() + 30
    while any(map(runs, children)):
        assert time.monotonic() < end, "left behind"
        time.sleep(0.05)


def runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.fixture
def folder(tmp_path):
    """Facts of so many hosts that several processes are worth it."""
    document = json.loads((paths.bundled("facts/recorded") / "h200-x4.json").read_text())
    for number in range(2 * parallel.ENOUGH):
        document["host"] = f"gpu{number:03}"
        document["facts"]["sysctl.vm.max_map_count"] = {"value": 1 if number == 7 else 1_048_576}
        (tmp_path / f"gpu{number:03}.json").write_text(json.dumps(document))
    return tmp_path


def audited(folder):
    choice = comparing(Selection(select=("max-map-count-low", "fleet-*")))
    return auditor.compared(auditor.by_name(auditor.audit_files(Saved(folder), choice)), choice, "2026-01-01")


def test_an_audit_says_the_same_in_several_processes(folder, monkeypatch):
    (folder / "gpu009.json").write_text("{")
    monkeypatch.setattr(parallel, "processes", lambda _things: 3)
    several = audited(folder)
    monkeypatch.setattr(parallel, "processes", lambda _things: 1)
    assert several == audited(folder)
    assert [each.host for each in several if any(found.status == "fail" for found in each.findings)] == ["gpu007"]
    assert [each.host for each in several if each.state == "bad facts"] == ["gpu009"]


def test_hosts_whose_process_died_are_named_as_not_reached(folder, monkeypatch):
    monkeypatch.setattr(parallel, "processes", lambda _things: 2)
    load = facts_document.load

    def dying(path, **how):
        if path.stem == "gpu100":
            os.kill(os.getpid(), signal.SIGKILL)
        return load(path, **how)

    monkeypatch.setattr(facts_document, "load", dying)
    lost = [each for each in audited(folder) if each.state != "ok"]
    assert [each.host for each in lost] == [f"gpu{number:03}" for number in range(100, 200, 2)]
    assert {each.message for each in lost} == {"the process for this host died: run the command again"}


def spins(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(1000))


def raises(problem):
    raise problem


ODD = {
    "takes for ever": (lambda: spins(600), "its facts were not judged: this took more than 0.3 s of CPU time"),
    "cannot be judged": (lambda: raises(RecursionError("deep")), "its facts cannot be judged: RecursionError('deep')"),
}


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(("work", "says"), ODD.values(), ids=ODD)
def test_a_host_that_cannot_be_judged_fails_alone(folder, monkeypatch, count, work, says):
    monkeypatch.setattr(parallel, "processes", lambda _things: count)
    monkeypatch.setattr(auditor, "MAX_SECONDS", 0.3)
    result = auditor.Auditor.result
    odd = {"gpu003"}
    monkeypatch.setattr(
        auditor.Auditor,
        "result",
        lambda self, facts, *more: work() if facts.host in odd else result(self, facts, *more),
    )
    found = {each.host: each for each in audited(folder)}
    assert (found["gpu003"].state, found["gpu003"].message) == ("bad facts", says)
    assert len(found) == 2 * parallel.ENOUGH
    assert {each.state for host, each in found.items() if host not in odd} == {"ok"}


def test_a_mistake_of_the_user_is_not_a_hosts(folder, monkeypatch):
    monkeypatch.setattr(parallel, "processes", lambda _things: 1)
    monkeypatch.setattr(auditor.Auditor, "result", lambda *_: raises(UserError("no such profile")))
    with pytest.raises(UserError, match="no such profile"):
        audited(folder)


@pytest.mark.parametrize(("work", "says"), ODD.values(), ids=ODD)
def test_a_single_file_has_the_limits_of_many(folder, monkeypatch, work, says):
    monkeypatch.setattr(auditor, "MAX_SECONDS", 0.3)
    monkeypatch.setattr(auditor.Auditor, "result", lambda *_: work())
    (found,) = auditor.audit_files(Saved(folder / "gpu003.json"), Selection(select=("max-map-count-low",)))
    assert (found.state, found.message) == ("bad facts", says)
