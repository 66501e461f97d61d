"""Changes are written down before they are made, made once, and rolled back to the byte."""

import inspect
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from nodetune_host import core, journal, lock, resources, session
from nodetune_host.executor import DryRun, Executor
from nodetune_host.journal import Journal
from nodetune_host.problem import StopError

from nodetune.remediation import host_changes
from tests.support import killing


def a_file(path, content="new\n", **more):
    return {"change": "file", "path": str(path), "content": content, **more}


def a_value(path, wish, **more):
    return {"change": "value", "path": str(path), "value": wish, **more}


def handler(text="restart nothing.service", **more):
    return {"change": "run", "run": text, **more}


KINDS = {name: kind for name, kind in vars(resources).items() if inspect.ismodule(kind) and hasattr(kind, "put")}
CALLED = {
    "read": 1,
    "wanted": 2,
    "put": 2,
    "show": 2,
    "label": 1,
    "place": 1,
    "same": 2,
    "moved_by_kernel": 2,
}
"""The functions of a kind of resource that the executor calls by name, and with how many arguments."""


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_each_kind_takes_what_the_executor_gives_it(kind):
    """A function of one's own under one of these names would be called too: irqs had such a `place`, and no change succeeded."""
    assert len(KINDS) > 10
    functions = {name: getattr(KINDS[kind], name, None) for name in CALLED}
    for name, function in functions.items():
        if function is not None:
            inspect.signature(function).bind(*range(CALLED[name]))


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """The system's tools of this host are scripts that write down how they were called; `failing` makes one fail."""
    folder = tmp_path / "tools"
    folder.mkdir()
    calls = tmp_path / "calls"

    def plant(name, status=0):
        script = f'#!/bin/sh\necho "{name} $*" >> {calls}\n[ {status} = 0 ] || echo it broke >&2\nexit {status}\n'
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)

    monkeypatch.setattr("nodetune_host.command.TOOL_PATH", f"{folder}:/usr/bin:/bin")
    for name in ("update-grub", "udevadm", "systemctl"):
        plant(name)
    plant.calls = lambda: calls.read_text().splitlines() if calls.exists() else []
    return plant


def test_what_is_right_is_left_alone_and_leaves_no_journal(do, home, tmp_path):
    (tmp_path / "file").write_text("new\n")
    result = do([a_file(tmp_path / "file")], checks=["some-check"])
    assert not result.changed
    assert result.done == [{"checks": ["some-check"], "label": f"{tmp_path}/file", "changed": False}]
    assert result.diff == []
    assert not home.exists()


def test_a_second_run_changes_nothing(do, tmp_path):
    changes = [a_file(tmp_path / "a"), a_file(tmp_path / "b"), handler("update-grub")]
    do(changes[:2])
    assert not do(changes, run="run-2").changed


def test_a_change_names_its_own_checks_or_the_groups(do, tmp_path):
    result = do([a_file(tmp_path / "a"), a_file(tmp_path / "b", checks=["own"])], checks=["groups"])
    assert [one["checks"] for one in result.done] == [["groups"], ["own"]]


def test_a_problem_of_one_change_is_told_and_the_next_is_made(do, tmp_path):
    (tmp_path / "folder").mkdir()
    result = do([a_file(tmp_path / "folder", checks=["x"]), a_file(tmp_path / "b")])
    assert [one["checks"] for one in result.problems] == [["x"]]
    assert "not a regular file" in result.problems[0]["message"]
    assert (tmp_path / "b").read_text() == "new\n"


def test_what_the_host_makes_of_a_value_is_read_back(do, tmp_path):
    result = do([a_value("/proc/self/timerslack_ns", "60000"), a_value("/proc/self/coredump_filter", "0xfffff")])
    assert len(result.problems) == 1, "the kernel keeps only the bits that it knows"
    assert (
        "wrote /proc/self/coredump_filter = 0xfffff, but read back /proc/self/coredump_filter"
        in (result.problems[0]["message"])
    )
    do.back()


def test_a_fault_in_one_change_does_not_end_the_others(do, tmp_path):
    result = do([a_file(tmp_path / "a", mode="rw-r--r--"), a_file(tmp_path / "b")])
    assert "an error in nodetune (file.py line" in result.problems[0]["message"]
    assert (tmp_path / "b").exists()


@pytest.mark.parametrize(
    "bad", [{"change": "core"}, {"change": "../x"}, {"path": "/x"}, {"change": 1}, {"change": "file"}]
)
def test_an_unknown_or_incomplete_change_stops_before_all_others(do, tmp_path, bad):
    with pytest.raises(StopError, match="change 2 "):
        do([a_file(tmp_path / "a"), bad])
    assert not (tmp_path / "a").exists()


def test_handlers_run_only_if_their_group_changed_something(do, tmp_path, tools):
    do([a_file(tmp_path / "a"), handler("update-grub"), handler("udev-reload")])
    assert tools.calls() == ["update-grub ", "udevadm control --reload"]
    do([a_file(tmp_path / "a"), handler("update-grub")], run="run-2")
    assert len(tools.calls()) == 2
    do([handler("update-grub", always=True)], run="run-3")
    assert len(tools.calls()) == 3


def test_a_unit_restarts_only_for_its_own_file(do, tmp_path, tools):
    (tmp_path / "right").write_text("new\n")
    ours, other = (handler(f"restart {name}.service", of=str(tmp_path / name)) for name in ("right", "wrong"))
    do([a_file(tmp_path / "right"), a_file(tmp_path / "wrong"), handler("daemon-reload"), ours, other])
    restarted = [call.split()[-1] for call in tools.calls() if "ActiveState" in call]
    assert restarted == ["wrong.service"]
    assert "systemctl daemon-reload" in tools.calls()
    assert do([a_file(tmp_path / "right"), ours], run="run-2").done[-1]["label"] == f"{tmp_path}/right", (
        "nothing is owed"
    )


def test_a_ram_disk_older_than_its_file_is_built_again(do, tmp_path, tools, monkeypatch):
    monkeypatch.setattr("nodetune_host.handler.RAM_DISKS", f"{tmp_path}/boot/*")
    monkeypatch.setattr("nodetune_host.handler.MODULES", f"{tmp_path}/modules")
    tools("update-initramfs")
    (tmp_path / "modules/6.8.0-51-generic").mkdir(parents=True)
    (tmp_path / "boot").mkdir()
    (tmp_path / "nodetune-nvidia.conf").write_text("new\n")
    for version in ("6.8.0-51-generic", "5.15.0-1-removed"):
        image = tmp_path / f"boot/initrd.img-{version}"
        image.write_text("")
        os.utime(image, (1, 1))
    group = [a_file(tmp_path / "nodetune-nvidia.conf"), handler("initramfs")]
    do(group)
    assert tools.calls() == ["update-initramfs -u -k all"]
    (tmp_path / "boot/initrd.img-6.8.0-51-generic").touch()
    do(group, run="run-2")
    assert len(tools.calls()) == 1, "the one of the kernel that is gone stays old"


@pytest.mark.parametrize(("answer", "reloads"), [("yes", 1), ("no", 0)])
def test_systemd_reloads_a_drop_in_that_it_has_not_read(do, tmp_path, tools, monkeypatch, answer, reloads):
    (tmp_path / "tools/systemctl").write_text(f'#!/bin/sh\necho "systemctl $*" >> {tmp_path}/calls\necho {answer}\n')
    drop_in = tmp_path / "slurmd.service.d/zz-nodetune.conf"
    drop_in.parent.mkdir()
    drop_in.write_text("new\n")
    monkeypatch.setattr("nodetune_host.handler.UNITS", str(tmp_path))
    do([a_file(drop_in), handler("daemon-reload")])
    asked = ["systemctl show --value -p NeedDaemonReload slurmd.service"]
    assert tools.calls() == asked + ["systemctl daemon-reload"] * reloads


@pytest.mark.parametrize(
    ("allowed", "running", "left"), [("", "0-1\n", "0-7\n"), ("0-1", "0-1\n", "0-1\n"), ("", "\n", "\n")]
)
def test_a_group_that_no_file_confines_gets_every_cpu(do, tmp_path, tools, monkeypatch, allowed, running, left):
    """systemd writes an empty list, which the kernel refuses while the group has tasks."""
    (tmp_path / "tools/systemctl").write_text(f"#!/bin/sh\necho {allowed}\n")
    (tmp_path / "every").write_text("0-7\n")
    (tmp_path / "system.slice").write_text(running)
    monkeypatch.setattr("nodetune_host.handler.CPUS", f"{tmp_path}/{{}}")
    monkeypatch.setattr("nodetune_host.handler.EVERY_CPU", f"{tmp_path}/every")
    do([a_file(tmp_path / "drop-in"), handler("free-cpus system.slice", of=str(tmp_path / "drop-in"))])
    assert (tmp_path / "system.slice").read_text().splitlines()[-1] == left.strip()


def test_a_handler_runs_after_an_earlier_change_only(do, tmp_path, tools):
    do([handler("update-grub"), a_file(tmp_path / "a")])
    assert tools.calls() == []


def test_a_failed_handler_is_a_problem_and_the_next_run_runs_it(do, tmp_path, tools):
    tools("update-grub", 3)
    group = [a_file(tmp_path / "a"), handler("update-grub")]
    assert do(group, checks=["x"]).problems == [
        {"checks": ["x"], "label": "update-grub", "message": "update-grub failed (3): it broke"}
    ]
    tools("update-grub")
    assert [one["label"] for one in do(group, run="run-2").done if one["changed"]] == ["update-grub"]
    assert not do(group, run="run-3").changed


def test_a_handler_lost_with_a_killed_run_is_run_by_the_next(do, home, tmp_path, tools):
    own = Journal("run-1", str(home))
    own.add_pending("group", [handler("update-grub")])
    (tmp_path / "a").write_text("new\n")
    do([a_file(tmp_path / "a"), handler("update-grub")], run="run-2")
    assert tools.calls() == ["update-grub "]


def test_a_reboot_replaces_a_lost_reload_but_no_boot_config(do, home, tmp_path, tools, monkeypatch):
    own = Journal("run-1", str(home))
    own.add_pending("group", [handler("update-grub"), handler("udev-reload")])
    monkeypatch.setattr(journal, "boot_id", lambda: "another boot")
    do([handler("update-grub"), handler("udev-reload")], run="run-2")
    assert tools.calls() == ["update-grub "]


def test_a_group_that_failed_restarts_nothing_next_time(do, tmp_path, tools):
    group = [a_value("/proc/self/cmdline", "not to be written"), handler("update-grub")]
    assert do(group).problems
    assert do(group, run="run-2").problems
    assert tools.calls() == []


def test_a_dry_run_shows_what_the_run_does_and_writes_nothing(do, home, tmp_path, tools):
    (tmp_path / "a").write_text("old\n")
    group = [
        a_file(tmp_path / "a", "first\n"),
        a_file(tmp_path / "a", "second\n", mode="0600"),
        a_file(tmp_path / "x.d" / "b"),
        a_file(tmp_path / "gone", None),
        handler("update-grub"),
    ]
    dry = do.check(group)
    assert not home.exists()
    assert not (tmp_path / "x.d").exists()
    assert (tmp_path / "a").read_text() == "old\n"
    assert tools.calls() == []
    real = do(group)
    assert (dry.diff, dry.done, dry.changed) == (real.diff, real.done, real.changed)
    assert real.diff[1]["before"] == "first\n"


def test_a_revert_restores_all_bytes_last_change_first(do, tmp_path):
    (tmp_path / "a").write_bytes(b"old\xff")
    do([a_file(tmp_path / "a", "1\n"), a_file(tmp_path / "new.d" / "b")], group="one")
    do([a_file(tmp_path / "a", "2\n")], group="two")
    result = do.back()
    assert (result.problems, result.refused) == ([], [])
    assert (tmp_path / "a").read_bytes() == b"old\xff"
    assert not (tmp_path / "new.d").exists()
    assert not do.back(own="back-2").changed, "rolled back once is rolled back"


def test_numbers_go_on_over_the_calls_of_a_run(do, home, tmp_path):
    do([a_file(tmp_path / "a")], group="one")
    do([a_file(tmp_path / "b")], group="two")
    entries = Journal("run-1", str(home)).entries()
    assert [entry["n"] for entry in entries if "change" in entry] == [0, 1]
    assert sum("machine" in entry for entry in entries) == 1


def test_a_revert_can_be_reverted(do, tmp_path):
    do([a_file(tmp_path / "a")])
    do.back()
    do.back(run="back-1", own="back-2")
    assert (tmp_path / "a").read_text() == "new\n"


def test_handlers_run_once_in_order_after_a_groups_rollback(do, tmp_path, tools):
    do([a_file(tmp_path / "a"), handler("udev-reload"), a_file(tmp_path / "b"), handler("update-grub")])
    before = len(tools.calls())
    do.back()
    assert tools.calls()[before:] == ["udevadm control --reload", "update-grub "]


def test_the_dry_run_of_a_rollback_shows_what_the_rollback_does(do, home, tmp_path, tools):
    do([a_file(tmp_path / "a", "1\n"), a_file(tmp_path / "a", "2\n"), handler("update-grub")])
    dry = do.back(executor=DryRun)
    assert (tmp_path / "a").read_text() == "2\n"
    assert not (home / "runs/back-1").exists()
    real = do.back()
    assert (dry.diff, dry.done, dry.changed) == (real.diff, real.done, real.changed)


def test_what_was_changed_since_is_refused_unless_forced(do, tmp_path):
    (tmp_path / "a").write_text("old\n")
    do([a_file(tmp_path / "a"), a_file(tmp_path / "b")])
    (tmp_path / "a").write_text("theirs\n")
    result = do.back()
    assert [one["message"] for one in result.refused] == ["changed since by someone else"]
    assert (result.refused[0]["diff"]["before"], result.refused[0]["diff"]["after"]) == ("new\n", "theirs\n")
    assert (tmp_path / "a").read_text() == "theirs\n"
    assert not (tmp_path / "b").exists(), "the others are rolled back"
    do.back(own="back-2", force=True)
    assert (tmp_path / "a").read_text() == "old\n"


def test_what_a_later_run_changed_is_refused_with_that_runs_name(do, tmp_path):
    do([a_file(tmp_path / "a", "1\n")], run="first")
    do([a_file(tmp_path / "a", "2\n")], run="second")
    assert [one["message"] for one in do.back("first").refused] == ["changed by run second since: roll that back first"]
    do.back("second", own="back-2")
    assert do.back("first", own="back-3").refused == []
    assert not (tmp_path / "a").exists()


def test_a_group_that_a_later_run_built_upon_is_left_whole(do, tmp_path):
    program, settings = a_file(tmp_path / "program", "code\n"), tmp_path / "settings"
    do([program, a_file(settings, "1\n")], run="first")
    do([a_file(settings, "1 2\n")], run="second")
    assert len(do.back("first").refused) == 2
    assert (tmp_path / "program").read_text() == "code\n", "the later run's settings still need it"
    do.back("second", own="back-2")
    do.back("first", own="back-3")
    assert not (tmp_path / "program").exists()


def test_a_record_of_another_host_is_refused(do, home, tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "machine_id", lambda: "aaaa")
    do([a_file(tmp_path / "a")])
    monkeypatch.setattr(core, "machine_id", lambda: "bbbb")
    with pytest.raises(StopError, match=r"belongs to another host \(machine-id aaaa, here bbbb\)"):
        do.back()
    assert (tmp_path / "a").exists()


@pytest.mark.parametrize("torn", ['{"n": 1, "chan', "\0" * 21, '\0\0\0"ok": true}\n{"n'])
def test_an_end_torn_by_a_power_cut_is_ignored_and_cut_off(do, home, tmp_path, torn):
    """Nulls are what ext4 leaves of lines that were written and not synced."""
    do([a_file(tmp_path / "a")])
    path = home / "runs/run-1/journal.jsonl"
    with path.open("a") as opened:
        opened.write(torn)
    assert len(Journal("run-1", str(home)).entries()) == 3
    do([a_file(tmp_path / "b")])
    assert [json.loads(line).get("n") for line in path.read_text().splitlines()] == [None, 0, 0, 1, 1]


def test_a_journal_damaged_in_its_middle_is_told_with_its_line(do, home, tmp_path):
    do([a_file(tmp_path / "a")])
    path = home / "runs/run-1/journal.jsonl"
    path.write_text("what?\n" + path.read_text())
    with pytest.raises(StopError, match=r"journal.jsonl is damaged at line 1"):
        do.back()


def test_only_root_may_look_into_journals(do, home, tmp_path):
    do([a_file(tmp_path / "a")])
    modes = {path.stat().st_mode & 0o077 for path in [home, *home.rglob("*")]}
    assert modes == {0}


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "x" * 101, "a\n"])
def test_a_name_of_a_run_that_is_no_file_name_is_refused(home, name):
    with pytest.raises(StopError, match="is not a valid run name"):
        Journal(name, str(home))


def test_a_journal_that_cannot_be_written_stops_all_changes(home, tmp_path):
    """The limit on a file's size fails a write in its middle, as a full disk does."""
    (tmp_path / "a").write_text("old\n")
    code = f"""
import resource, signal, sys
sys.path[:0] = {sys.path!r}
from nodetune_host import core
from nodetune_host.executor import DryRun, Executor
from nodetune_host.journal import Journal
from nodetune_host.problem import StopError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    for number in range(9):
        wish = {{"change": "file", "path": {str(tmp_path / "a")!r}, "content": str(number)}}
        core.do([wish], Executor(Journal("run-1", {str(home)!r})), core.Result())
except StopError as stop:
    print(number, stop)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    number, _, message = said.partition(" ")
    assert message == f"nothing more is changed: {home}/runs/run-1/journal.jsonl cannot be written: file too large\n"
    assert (tmp_path / "a").read_text() == str(int(number) - 1), "what was not written down was not done"
    lines = (home / "runs/run-1/journal.jsonl").read_text().splitlines()
    assert all(json.loads(line) for line in lines), "no line is left half-written"


def test_a_run_killed_at_any_moment_can_be_rolled_back(home, tmp_path):
    folder = tmp_path / "etc"
    folder.mkdir()
    old = {folder / f"{n}.conf": os.urandom(50) + b"%d" % n for n in (0, 2)}
    new = {folder / f"{n}.conf": b"new %d\n" % n * 1000 for n in range(3)}
    for path, content in old.items():
        path.write_bytes(content)
    changes = [{"change": "file", "path": str(path), "content": content.decode()} for path, content in new.items()]

    def run():
        core.do(changes, Executor(Journal("run-1", str(home))), core.Result(), "files")

    made = set()
    for _ in killing.before_each_change(run):
        entries = Journal("run-1", str(home)).entries()
        known = {one["change"]["path"] for one in journal.changes(entries)}
        made.add(len(known))
        for path, content in new.items():
            found = path.read_bytes() if path.exists() else None
            assert found in (old.get(path), content)
            assert found == old.get(path) or str(path) in known
        result = core.Result()
        core.revert(entries, Executor(Journal("back-1", str(home))), result)
        assert (result.problems, result.refused) == ([], [])
        assert {path: path.read_bytes() for path in folder.glob("*.conf")} == old
        shutil.rmtree(home, ignore_errors=True)
    assert made == {0, 1, 2, 3}, "a kill came before, between and after the changes"
    assert {path: path.read_bytes() for path in folder.glob("*.conf")} == new


def test_controller_and_host_agree_on_what_reverts_by_itself():
    assert {kind for kind, each in vars(resources).items() if getattr(each, "TIMED", False)} == set(host_changes.TIMED)


def test_timed_changes_are_rolled_back_apart_from_slow_ones(do, home, tmp_path, monkeypatch):
    monkeypatch.setattr(resources.value, "TIMED", True, raising=False)
    (tmp_path / "link").write_text("1500")
    do([a_value(tmp_path / "link", "9000")], group="net_link")
    do([a_file(tmp_path / "slow")], group="modprobe")
    entries = Journal("run-1", str(home)).entries()

    def back(timed):
        result = core.Result()
        core.revert(entries, Executor(Journal("back-1", str(home))), result, timed=timed)
        return [Path(done["label"]).name for done in result.done if done["changed"]], result.timed

    assert back(True) == (["link"], True)
    assert back(False) == (["slow"], False)
    assert (tmp_path / "link").read_text().strip() == "1500"
    assert not (tmp_path / "slow").exists()


def test_a_run_that_never_ended_is_told_once_with_what_it_did(home, tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "HOME", str(home))
    monkeypatch.setattr(lock, "FOLDER", str(tmp_path / "lock"))
    own = Journal("dead")
    own.add_pending("group", [handler("update-grub")])
    own.begin_change("group", a_file(tmp_path / "a"), [], {}, {})
    (tmp_path / ".a.nodetune-part").write_text("half")
    assert session.begin("next", "me", "", True)[0]["did"] == [str(tmp_path / "a")]
    assert (tmp_path / ".a.nodetune-part").exists(), "a dry run changes nothing"
    told = session.begin("next", "me", "", False)
    assert [(one["run"], one["did"], one["handlers"]) for one in told] == [
        ("dead", [str(tmp_path / "a")], ["update-grub"])
    ]
    assert not (tmp_path / ".a.nodetune-part").exists()
    assert session.begin("next", "me", "", False) == []


class TestLock:
    @pytest.fixture
    def folder(self, tmp_path):
        return str(tmp_path / "lock")

    def test_a_second_run_is_refused_with_the_name_of_the_first(self, folder):
        with lock.Lock("first", folder) as first:
            first.take("anna@head1")
        with (
            lock.Lock("second", folder) as second,
            pytest.raises(StopError, match="run first of anna@head1 has been running on this"),
        ):
            second.take("ben@head2")

    def test_the_same_run_continues(self, folder):
        for _ in range(2):
            with lock.Lock("first", folder) as first:
                first.take("anna@head1")
                first.keep()

    def test_a_dead_run_is_taken_over_and_cannot_come_back(self, folder):
        with lock.Lock("first", folder) as first:
            first.take("anna@head1")
        with lock.Lock("second", folder) as second:
            second.take("anna@head1", take_over="first")
        with lock.Lock("first", folder) as first, pytest.raises(StopError, match="run second of anna@head1 has taken"):
            first.keep()

    @pytest.fixture
    def long_later(self, monkeypatch):
        """long_later() lets more time pass than a silent run has."""
        return lambda: monkeypatch.setattr(lock, "since_boot", lambda: time.monotonic() + lock.STALE_SECONDS + 1)

    @pytest.mark.parametrize("clock", [-10e6, 0, 10e6])
    def test_a_run_not_heard_of_for_long_gives_way(self, folder, long_later, clock):
        """Whatever the clock of the host was set to since."""
        with lock.Lock("first", folder) as first:
            first.take("anna@head1")
            os.utime(first.path, (time.time() + clock, time.time() + clock))
        long_later()
        with lock.Lock("second", folder) as second:
            second.take("ben@head2")
            assert second.holder()["run"] == "second"

    @pytest.mark.parametrize("seconds", [-lock.STALE_SECONDS - 1, lock.STALE_SECONDS + 1])
    def test_a_lock_of_the_first_edition_gives_way_by_date(self, folder, seconds):
        with lock.Lock("first", folder) as first:
            first.take("anna@head1")
            held = first.holder()
            del held["heard"]
            Path(first.path).write_text(json.dumps(held))
            os.utime(first.path, (time.time() + seconds, time.time() + seconds))
        with lock.Lock("second", folder) as second:
            second.take("ben@head2")

    def test_a_long_run_that_is_heard_of_does_not_give_way(self, folder, long_later):
        with lock.Lock("first", folder) as first:
            first.take("anna@head1")
            long_later()
            first.keep()
        with (
            lock.Lock("second", folder) as second,
            pytest.raises(StopError, match="run first of anna@head1 has been running on this"),
        ):
            second.take("ben@head2")

    def test_a_lock_of_an_earlier_boot_is_none(self, folder, monkeypatch):
        with lock.Lock("first", folder) as first:
            first.take("anna@head1")
            monkeypatch.setattr(lock, "boot_id", lambda: "another boot")
            with pytest.raises(StopError, match="does not own this host: the host was rebooted since"):
                first.keep()

    def test_a_call_that_still_works_is_not_joined_by_another(self, folder, monkeypatch):
        monkeypatch.setattr(lock, "WORK_SECONDS", 0.2)
        with lock.Lock("first", folder) as first:
            first.take("anna@head1")
            with pytest.raises(StopError, match="run first is running on this host now"), lock.Lock("second", folder):
                pass

    def test_a_run_that_was_stopped_does_nothing_more_on_this_host(self, folder):
        with lock.Lock("first", folder) as first:
            first.take("anna@head1")
            first.mark(stopped="GPU 0 is in use")
            with pytest.raises(StopError, match="not tried, after an earlier step: GPU 0 is in use"):
                first.keep()

    def test_a_released_host_is_free(self, folder):
        with lock.Lock("first", folder) as first:
            first.take("anna@head1")
            first.release()
            assert first.holder() == {}


def test_what_is_as_before_the_run_is_not_undone_step_by_step(do, tmp_path):
    """A run that wrote one file twice, rolled back once: a second rollback, forced or not, finds nothing to do."""
    path = tmp_path / "new" / "a.conf"
    do([{"change": "file", "path": str(path), "content": "one\n"}], group="first")
    do([{"change": "file", "path": str(path), "content": "one\ntwo\n"}], group="second")
    assert do.back().changed
    assert not path.parent.exists()
    for force in (False, True):
        again = do.back(own=f"back-{force}", force=force)
        assert (again.changed, again.refused, again.problems) == (False, [], [])
        assert not path.parent.exists()
