"""A rollback on a host whose disk is full: what needs no space is undone, what needs some says how much."""

import contextlib
import os
import shutil
import subprocess

import pytest
from nodetune_host import core, journal, lock, session
from nodetune_host.journal import Journal
from nodetune_host.problem import StopError

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A host whose / is a small file system: fill() leaves no free byte."""
    root = tmp_path / "root"
    root.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", root], capture_output=True)
    if done.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        monkeypatch.setattr(journal, "HOME", str(root / "var"))
        monkeypatch.setattr(journal, "IN_MEMORY", str(tmp_path / "run" / "journals"))
        monkeypatch.setattr(lock, "FOLDER", str(tmp_path / "run" / "lock"))
        yield root
    finally:
        subprocess.run(["umount", "-l", root], check=True)


def fill(host):
    """Leave no free byte."""
    with contextlib.suppress(OSError), (host / "filler").open("wb", buffering=0) as filler:
        while True:
            filler.write(bytes(4096))


def apply(*changes):
    session.begin("run-1", "me", "", False)
    group = {"group": "g", "guard": {}, "checks": [], "changes": list(changes)}
    session.change("run-1", group, core.Result())
    session.end("run-1")


def roll_back(of="run-1", run="back-1", entries=()):
    """Roll back as revert.yml does."""
    session.begin(run, "me", "", False)
    given = {"run": run, "of": of, "entries": list(entries), "force": False, "guard": {}, "guarded": []}
    results = []
    for timed in (True, False):
        results.append(core.Result())
        session.revert(dict(given, timed=timed), results[-1], False)
    session.end(run)
    return results[-1]


def test_what_needs_no_space_is_undone_on_a_full_disk(host, tmp_path):
    value = tmp_path / "value"
    value.write_text("60\n")
    apply(
        {"change": "value", "path": str(value), "value": "10"},
        {"change": "file", "path": str(host / "etc/x.d/new.conf"), "content": "x" * 100},
    )
    fill(host)
    result = roll_back()
    assert (result.problems, result.refused) == ([], [])
    assert value.read_text().strip() == "60"
    assert not (host / "etc").exists()
    assert len([entry for entry in result.entries if "change" in entry]) == 2, "the controller gets its journal"


def test_what_needs_space_says_how_much_and_where(host):
    (host / "old.conf").write_text("o" * 9000)
    apply({"change": "file", "path": str(host / "old.conf"), "content": "short\n"})
    fill(host)
    result = roll_back()
    (problem,) = result.problems
    assert problem["message"] == (
        f"{host}/old.conf cannot be written: no space left on device"
        f" (it needs 9000 bytes in {host}: free some space, then run this again)"
    )
    (host / "filler").unlink()
    assert roll_back(run="back-2").problems == []
    assert (host / "old.conf").read_text() == "o" * 9000


def test_a_rollback_journaled_in_memory_is_rolled_back(host, tmp_path):
    value = tmp_path / "value"
    value.write_text("60\n")
    apply({"change": "value", "path": str(value), "value": "10"})
    fill(host)
    entries = roll_back().entries
    (host / "filler").unlink()
    roll_back(of="back-1", run="again-1")
    assert value.read_text().strip() == "10"
    roll_back(run="back-2")
    shutil.rmtree(tmp_path / "run")
    roll_back(of="back-1", run="again-2", entries=entries)
    assert value.read_text().strip() == "10", "after a boot the copy of the controller is taken"


def test_an_apply_on_a_full_disk_still_changes_nothing(host, tmp_path):
    value = tmp_path / "value"
    value.write_text("60\n")
    fill(host)
    with pytest.raises(StopError, match=r"nothing is changed: .* no space left on device"):
        apply({"change": "value", "path": str(value), "value": "10"})
    assert value.read_text() == "60\n"


def test_a_run_that_died_on_a_full_disk_can_be_rolled_back(host, tmp_path):
    value = tmp_path / "value"
    value.write_text("60\n")
    group = {"group": "g", "guard": {}, "checks": []}
    session.begin("run-1", "me", "", False)
    change = {"change": "value", "path": str(value), "value": "10"}
    session.change("run-1", dict(group, changes=[change]), core.Result())
    fill(host)
    session.begin("back-1", "me", "run-1", False)
    assert Journal("run-1").entries()
    assert roll_back().problems == []
    assert value.read_text().strip() == "60"
