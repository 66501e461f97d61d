"""Rollbacks of several runs on one host: only a later run whose change still stands is in the way."""

import json

import pytest
from nodetune_host.journal import Journal


def a_file(path, content):
    return {"change": "file", "path": str(path), "content": content}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.conf"
    path.write_text("old\n")
    return path


@pytest.fixture
def back(do):
    """Roll back a run; returns what was refused, as texts."""

    def roll_back(run, own, force=False):
        result = do.back(run, own, force)
        assert result.problems == []
        return [refused["message"] for refused in result.refused]

    return roll_back


def without_of(home, run):
    """Make the journal of a run one of the version that did not say what a rollback undid."""
    path = home / "runs" / run / "journal.jsonl"
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    for entry in entries:
        for name in ("sum", "of", "place"):
            entry.pop(name, None)
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))


@pytest.mark.parametrize("old", [False, True])
def test_the_same_apply_is_rolled_back_as_often_as_made(do, back, home, path, old):
    for number in range(3):
        do([a_file(path, "1\n"), a_file(path, "2\n")], run=f"run-{number}")
        assert back(f"run-{number}", f"back-{number}") == []
        assert path.read_text() == "old\n"
        for run in (f"run-{number}", f"back-{number}") if old else ():
            without_of(home, run)


def test_what_a_later_run_set_as_it_was_is_that_runs(do, back, path):
    do([a_file(path, "1\n")], run="run-1")
    do([a_file(path, "old\n")], run="run-2")
    assert back("run-1", "back-1") == ["changed by run run-2 since: roll that back first"]
    assert (back("run-2", "back-2"), back("run-1", "back-3")) == ([], [])
    assert path.read_text() == "old\n"


def test_a_later_run_that_failed_to_change_it_is_not_in_the_way(do, back, home, path):
    do([a_file(path, "1\n")], run="run-1")
    own = Journal("run-2", str(home))
    states = [{"content": text, "mode": "0644", "uid": 0, "gid": 0} for text in ("MQo=", "Mgo=")]
    own.end_change(own.begin_change("group", a_file(path, "2\n"), [], *states), states[0], "it failed")
    assert back("run-1", "back-1") == []
    assert path.read_text() == "old\n"


def test_a_later_run_that_was_rolled_back_is_not_in_the_way(do, back, path):
    do([a_file(path, "1\n")], run="run-1")
    do([a_file(path, "2\n")], run="run-2")
    do([a_file(path, "3\n")], run="run-3")
    assert back("run-3", "back-3") == []
    assert back("run-1", "back-1") == ["changed by run run-2 since: roll that back first"]
    assert (back("run-2", "back-2"), back("run-1", "back-4")) == ([], [])
    assert path.read_text() == "old\n"


def test_a_run_made_to_stand_again_is_in_the_way_again(do, back, path):
    do([a_file(path, "1\n")], run="run-1")
    do([a_file(path, "2\n")], run="run-2")
    back("run-2", "back-2")
    back("back-2", "again-2")
    assert path.read_text() == "2\n"
    assert back("run-1", "back-1") == ["changed by run run-2 since: roll that back first"]
    assert (back("run-2", "back-3"), back("run-1", "back-4")) == ([], [])
    assert path.read_text() == "old\n"


def test_what_else_is_kept_with_a_changed_file_says_so(do, back, tmp_path, path):
    do([a_file(tmp_path / "program", "code\n"), a_file(path, "1\n")], run="run-1")
    do([a_file(path, "2\n")], run="run-2")
    assert back("run-1", "back-1") == [
        "changed by run run-2 since: roll that back first",
        f"kept with {path}, which run run-2 changed since: roll that back first",
    ]


def test_a_file_written_twice_and_changed_since_is_refused_once(do, back, path):
    do([a_file(path, "1\n")], group="one")
    do([a_file(path, "2\n")], group="two")
    path.write_text("theirs\n")
    assert back("run-1", "back-1") == ["changed since by someone else"]


def test_what_an_older_runs_rollback_set_is_not_by_someone_else(do, back, tmp_path, path):
    value = tmp_path / "value"
    value.write_text("10\n")
    for run, number in (("run-1", "20"), ("run-2", "30")):
        do([{"change": "value", "path": str(value), "value": number}, a_file(path, number)], run=run)
    path.write_text("theirs\n")
    assert back("run-2", "back-2") == ["changed since by someone else"]
    assert back("run-1", "back-1") == ["changed since by someone else"]
    assert value.read_text().strip() == "10"
    assert back("run-2", "back-3") == ["changed since by someone else"], "the file; the value is undone already"
    assert back("run-2", "back-4", force=True) == []
    assert value.read_text().strip() == "10"


def test_what_was_rolled_back_and_then_changed_is_left_alone(do, back, path):
    do([a_file(path, "1\n")])
    back("run-1", "back-1")
    path.write_text("theirs\n")
    assert (back("run-1", "back-2"), back("run-1", "back-3", force=True)) == ([], [])
    assert path.read_text() == "theirs\n"


def test_a_file_brought_back_halfway_is_brought_back_later(do, back, tmp_path, path):
    other = tmp_path / "other"
    do([a_file(path, "1\n"), a_file(other, "1\n")], run="run-1", group="one")
    do([a_file(path, "2\n"), a_file(path, "3\n")], run="run-1", group="two")
    do([a_file(other, "theirs\n")], run="run-2")
    assert len(back("run-1", "back-1")) == 2
    assert path.read_text() == "1\n", "the second group is undone, the first is kept with the other file"
    assert (back("run-2", "back-2"), back("run-1", "back-3")) == ([], [])
    assert (path.read_text(), other.exists()) == ("old\n", False)


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_the_last_run_to_leave_removes_the_shared_folder(do, back, tmp_path, order):
    do([a_file(tmp_path / "ours/gpu/a", "1\n")], run="run-1")
    do([a_file(tmp_path / "ours/irq/b", "2\n")], run="run-2")
    for number in order:
        assert (tmp_path / "ours").is_dir()
        assert back(f"run-{number}", f"back-{number}") == []
    assert not (tmp_path / "ours").exists()


def test_runs_are_in_order_although_the_clock_was_set_back(do, back, path, monkeypatch):
    do([a_file(path, "1\n")], run="run-1")
    monkeypatch.setattr("nodetune_host.journal.time.time", lambda: 1000.0)
    do([a_file(path, "2\n")], run="run-2")
    assert back("run-1", "back-1") == ["changed by run run-2 since: roll that back first"]
    assert (back("run-2", "back-2"), back("run-1", "back-3")) == ([], [])
    assert path.read_text() == "old\n"


def test_a_run_of_an_older_version_that_a_clock_set_back_dates_before_is_named(do, back, home, path):
    do([a_file(path, "1\n")], run="run-1")
    do([a_file(path, "2\n")], run="run-2")
    without_of(home, "run-2")
    journal = home / "runs/run-2/journal.jsonl"
    head, *rest = journal.read_text().splitlines(True)
    journal.write_text(json.dumps({**json.loads(head), "since": 1000.0}) + "\n" + "".join(rest))
    (message,) = back("run-1", "back-1")
    assert message == (
        "changed by run run-2, which is dated before it: the clock of this host was set back; force restores the state before both"
    )
    assert back("run-1", "back-2", force=True) == []
    assert path.read_text() == "old\n"


@pytest.mark.parametrize(
    "damage", [lambda text: text[: len(text) // 2] + "\n", lambda _: "", lambda text: text + "{}\n"]
)
def test_a_run_with_a_damaged_journal_may_have_changed_it(do, back, home, path, damage):
    do([a_file(path, "1\n")], run="run-1")
    do([a_file(path, "2\n")], run="run-2")
    journal = home / "runs/run-2/journal.jsonl"
    journal.write_text(damage(journal.read_text()))
    (message,) = back("run-1", "back-1")
    assert message == "changed since, perhaps by a run with a damaged journal (run-2): restore that first"
    assert path.read_text() == "2\n"
