"""The next run on a host removes what a killed one left half-done."""

import shutil

import pytest
from nodetune_host import core, journal, lock, session
from nodetune_host.executor import Executor
from nodetune_host.journal import Journal
from nodetune_host.problem import StopError

from tests.support import killing


@pytest.fixture
def host(tmp_path, monkeypatch):
    """The state folder of a host whose runs begin and end by a session."""
    home = tmp_path / "state"
    monkeypatch.setattr(journal, "HOME", str(home))
    monkeypatch.setattr(lock, "FOLDER", str(tmp_path / "lock"))
    return home


def test_a_killed_run_leaves_no_empty_folder(host, tmp_path):
    etc = tmp_path / "etc"
    etc.mkdir()
    wish = {"change": "file", "path": str(etc / "x.d" / "y.d" / "a.conf"), "content": "new\n"}
    halves = set()
    for number in killing.before_each_change(lambda: core.do([wish], Executor(Journal("dead")), core.Result(), "g")):
        halves |= {path.name for path in etc.rglob("*")}
        session.begin(f"next-{number}", "me", f"next-{number - 1}", False)
        assert [path for path in host.glob("runs/*") if not any(path.iterdir())] == []
        if not any(path.is_file() for path in etc.rglob("*")):
            assert list(etc.iterdir()) == []
        core.revert(Journal("dead").entries(), Executor(Journal(f"next-{number}")), core.Result())
        assert list(etc.iterdir()) == []
        session.end(f"next-{number}")
        for path in [*host.rglob("journal.jsonl")]:
            path.unlink()
    assert halves == {"x.d", "y.d", "a.conf", ".a.conf.nodetune-part"}


def test_a_killed_rollback_leaves_no_empty_folder(host, tmp_path):
    etc = tmp_path / "etc"
    etc.mkdir()
    wish = {"change": "file", "path": str(etc / "x.d" / "y.d" / "a.conf"), "content": "new\n"}

    def apply():
        core.do([wish], Executor(Journal("run-1")), core.Result(), "g")
        Journal("run-1").end()

    def back(run):
        core.revert(Journal("run-1").entries(), Executor(Journal(run)), core.Result())

    apply()
    halves = set()
    for number in killing.before_each_change(lambda: back("dead")):
        halves.add(len([*etc.rglob("*")]))
        session.begin(f"next-{number}", "me", f"next-{number - 1}", False)
        back(f"next-{number}")
        assert list(etc.iterdir()) == []
        shutil.rmtree(host)
        apply()
    assert {3, 1, 0} <= halves, "a kill came before, between and after"


def test_a_copy_without_all_entries_rolls_nothing_back(host):
    given = {"run": "back-1", "of": "gone", "entries": [{"withheld": "it contains a password"}]}
    with pytest.raises(StopError, match="lacks entries that contained a password: nothing is undone"):
        session.revert(given, core.Result(), False)


def test_a_program_half_unpacked_is_removed(host, tmp_path):
    part = tmp_path / "opt" / ".guard-1.nodetune-part"
    part.mkdir(parents=True)
    (part / "a.py").write_text("")
    before = {"python": None, "folder": str(tmp_path / "opt")}
    change = {"change": "program", "path": str(tmp_path / "opt" / "guard-1"), "archive": "", "pythons": ["/x"]}
    Journal("dead").begin_change("g", change, [], before, {"python": "/x"})
    session.begin("next", "me", "", False)
    assert not (tmp_path / "opt").exists()
