"""A power cut at any moment of a run or a rollback: what was not synced is gone, and all the rest can be undone.

Before each call that changes a file the test notes what a disk would hold then. Each of these disks is laid out in turn
and rolled back by the next run.
"""

import os
import shutil
from pathlib import Path

import pytest
from nodetune_host import core, journal, lock, session

pytestmark = pytest.mark.slow

MODELS = ("synced", "names", "nulls", "all")
"""What a cut leaves: only what was synced; all names; all names, with nulls for unsynced bytes; everything."""

CHANGING = ("open", "write", "fsync", "rename", "unlink", "mkdir", "rmdir", "ftruncate", "chmod", "fchmod")


class Disk:
    """Notes what is on the disk below `root` before each change. Files are known by a number of their own."""

    def __init__(self, root, patch):
        self.root, self.moments = root, []
        self.numbers, self.synced, self.names = {}, {}, {}
        for path in [root, *root.rglob("*")]:
            self._sync(path)
        for name in CHANGING:
            patch.setattr(os, name, self._noting(name, getattr(os, name)))

    def _noting(self, name, real):
        def call(*given, **more):
            if name != "open" or given[1] & os.O_CREAT:
                self.moments.append((self._now(self.root), dict(self.synced), dict(self.names)))
            new = name == "open" and given[1] & os.O_CREAT and not os.path.lexists(given[0])
            result = real(*given, **more)
            if new:
                self.numbers[os.stat(given[0]).st_ino] = len(self.moments) + 1_000_000
            if name == "fsync":
                self._sync(Path(os.readlink(f"/proc/self/fd/{given[0]}")))
            return result

        return call

    def _number(self, path):
        return self.numbers.setdefault(path.stat().st_ino, len(self.numbers))

    def _sync(self, path):
        if path.is_dir():
            self.names[path] = {each: None if each.is_dir() else self._number(each) for each in path.iterdir()}
        elif path.exists():
            self.synced[self._number(path)] = path.read_bytes(), path.stat().st_mode & 0o7777

    def _now(self, folder):
        found = {}
        for each in folder.rglob("*"):
            about = each.stat().st_mode & 0o7777
            found[each] = None if each.is_dir() else (self._number(each), each.read_bytes(), about)
        return found


def lay_out(root, moment, model):
    """Make `root` what a power cut at that moment leaves."""
    now, synced, names = moment
    shutil.rmtree(root)
    root.mkdir()
    if model == "synced":
        _lay_out_synced(root, synced, names)
        return
    for path, file in sorted(now.items()):
        if file is None:
            path.mkdir()
            continue
        number, content, mode = file
        kept = synced.get(number, (b"", mode))[0]
        if model == "nulls" and kept != content:
            kept += b"\0" * (len(content) - len(kept))
        path.write_bytes(content if model == "all" else kept)
        path.chmod(mode)


def _lay_out_synced(folder, synced, names):
    for path, number in names.get(folder, {}).items():
        if number is None:
            path.mkdir()
            _lay_out_synced(path, synced, names)
        else:
            content, mode = synced.get(number, (b"", 0o600))
            path.write_bytes(content)
            path.chmod(mode)


@pytest.fixture
def host(tmp_path, monkeypatch):
    """The folder of a host's disk, with some files in etc."""
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc/kept.conf").write_bytes(b"old \xff\n")
    (root / "etc/gone.conf").write_text("to go\n")
    (root / "etc/fstab").write_text("/dev/sda1 / ext4 defaults 0 1\n")
    monkeypatch.setattr(journal, "HOME", str(root / "var"))
    monkeypatch.setattr(journal, "IN_MEMORY", str(tmp_path / "run/journals"))
    monkeypatch.setattr(lock, "FOLDER", str(tmp_path / "run/lock"))
    return root


def tree(folder):
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def apply(etc, run="run-1"):
    def file(name, content):
        return {"change": "file", "path": str(etc / name), "content": content}

    session.begin(run, "me", "", False)
    for group, changes in {
        "first": [file("kept.conf", "one\n" * 2000), file("new.d/sub.d/a.conf", "new\n")],
        "second": [file("gone.conf", None), file("kept.conf", "two\n")],
    }.items():
        wanted = {"group": group, "guard": {}, "checks": [], "changes": changes}
        session.change(run, wanted, core.Result())
    session.end(run)


def roll_back(run="back-1"):
    session.begin(run, "me", "", False)
    given = {"run": run, "of": "run-1", "entries": [], "force": False, "guard": {}, "guarded": [], "timed": None}
    result = core.Result()
    session.revert(given, result, False)
    session.end(run)
    assert (result.problems, result.refused) == ([], [])


def cuts(host, monkeypatch, work):
    """Do `work`; then yield after laying out each disk that a cut during it would have left, and starting the host."""
    with monkeypatch.context() as patch:
        disk = Disk(host, patch)
        work()
    assert len(disk.moments) > 40
    for number, moment in enumerate(disk.moments, 1):
        for model in MODELS:
            lay_out(host, moment, model)
            shutil.rmtree(host.parent / "run")
            for module in (journal, lock):
                monkeypatch.setattr(module, "boot_id", lambda number=number, model=model: f"boot {number} {model}")
            yield number, model


def test_a_cut_at_any_moment_of_a_run_is_undone(host, monkeypatch):
    before = tree(host / "etc")
    for cut in cuts(host, monkeypatch, lambda: apply(host / "etc")):
        roll_back()
        assert tree(host / "etc") == before, cut


def test_a_cut_at_any_moment_of_a_rollback_is_continued(host, monkeypatch):
    before = tree(host / "etc")
    apply(host / "etc")
    assert tree(host / "etc") != before
    for cut in cuts(host, monkeypatch, roll_back):
        roll_back("back-2")
        assert tree(host / "etc") == before, cut
