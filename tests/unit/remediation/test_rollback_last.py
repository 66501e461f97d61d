"""Which run `rollback last` means, what it asks, and what `rollback --all` undoes. What Ansible says is given."""

import io
import json

import click
import pytest

from nodetune.cli import passwords
from nodetune.cli.main import group
from nodetune.foundation import UserError
from nodetune.foundation.exit_codes import END_STATE_MISSED, OK
from nodetune.remediation import rollback
from nodetune.remediation.ansible.events import Event, Outcome
from nodetune.remediation.runs import record
from nodetune.remediation.runs.files import DamageError
from nodetune.remediation.runs.record import Run
from tests.support.documents import valid

ENTRY = {"n": 0, "group": "sysctl", "change": {"change": "value", "path": "/proc/sys/vm/swappiness"}, "after": "1"}


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A folder of records whose ids are in the order in which they were made."""
    numbers = iter(range(1, 100))

    def folder(home):
        there = home / f"20261123-0000{next(numbers):02}-0000"
        there.mkdir(parents=True)
        return there

    monkeypatch.setattr(record, "_new_folder", folder)
    return tmp_path / "runs"


def made(root, command="apply", hosts=("gpu1",), changed=True, ended=True):
    """One run that changed something on its hosts, or nothing."""
    run = Run.create(command, {}, hosts, ",".join(hosts) + ",", root)
    for name in hosts if changed else ():
        run.add_entries(name, [ENTRY])
    if ended:
        run.finish(OK)
    return run


class Plays:
    """Plays instead of Ansible's. `seen`: the runs that were rolled back, with hosts; `refused`: hosts that keep all."""

    def __init__(self):
        self.seen, self.dry, self.refused, self.changes = [], [], set(), True

    def play(self, _name, targets, variables, options, *_):
        for target in targets:
            (self.dry if options.check else self.seen).append((variables[target.name]["nodetune_of"], target.name))
        return {target.name: Outcome(target.name, results=(self._said(target.name),)) for target in targets}

    def _said(self, host):
        if host in self.refused:
            told = {"refused": [{"label": "vm.swappiness", "message": "changed since", "checks": [], "diff": {}}]}
        else:
            told = {"done": [{"label": "vm.swappiness", "changed": self.changes, "checks": []}]}
        return Event(host, "Revert", result=told)


@pytest.fixture
def plays(monkeypatch):
    found = Plays()
    monkeypatch.setattr(rollback.play, "play", found.play)
    return found


def cli(root, *words):
    return group.main(["rollback", *words, "--runs", str(root)], prog_name="nodetune", standalone_mode=False)


@pytest.fixture
def typed(monkeypatch):
    """What a person types at the question; the questions are noted."""
    asked = []

    def answer(text):
        monkeypatch.setattr("sys.stdin", type("Terminal", (io.StringIO,), {"isatty": lambda _: True})(text))
        return asked

    return answer


def test_last_twice_undoes_two_runs(root, plays):
    first, second = made(root), made(root)
    assert cli(root, "last", "--yes") == OK
    assert cli(root, "last", "--yes") == OK
    assert [of for of, _ in plays.seen] == [second.id, first.id]
    with pytest.raises(UserError, match="nothing to roll back"):
        cli(root, "last", "--yes")


def test_a_rollback_of_the_last_run_says_which_one_that_is(root, plays, capsys):
    run = made(root, hosts=("gpu1", "gpu2"))
    assert cli(root, "last", "--yes", "--dry-run") == OK
    assert f"`last` is run {run.id} (apply of " in capsys.readouterr().err.replace("\n", " ")


def test_a_last_run_that_changed_nothing_ends_the_rollback(root, plays):
    first, second = made(root), made(root, changed=False)
    with pytest.raises(UserError) as told:
        cli(root, "last", "--yes")
    assert str(told.value) == (
        f"the last run, {second.id}, changed nothing: nothing to roll back; the last one that changed something: "
        f"nodetune rollback {first.id}"
    )
    assert (plays.seen, plays.dry) == ([], [])
    assert cli(root, first.id, "--yes") == OK
    with pytest.raises(UserError, match=rf"{second.id}, changed nothing: nothing to roll back$"):
        cli(root, "last", "--yes")


def test_a_run_rolled_back_where_it_changed_something_is_over(root, plays):
    first, second = made(root), made(root, hosts=("gpu1", "gpu2"), changed=False, ended=False)
    second.add_entries("gpu1", [ENTRY])
    second.finish(OK)
    cli(root, "last", "--limit", "gpu1", "--yes")
    cli(root, "last", "--yes")
    assert [of for of, _ in plays.seen] == [second.id, first.id]


def test_a_run_that_was_killed_may_have_changed_something(root, plays):
    made(root)
    killed = made(root, changed=False, ended=False)
    about = json.loads((killed.folder / "run.json").read_text())
    about["controller"]["start"] = "1"
    (killed.folder / "run.json").write_text(json.dumps(about))
    cli(root, "last", "--yes")
    assert plays.seen == [(killed.id, "gpu1")]


@pytest.mark.parametrize(("tasks", "lost"), [(["Begin"], True), (["Begin", "Change", "End"], False), ([], False)])
def test_a_host_that_was_lost_may_have_been_changed(root, plays, tasks, lost):
    run = made(root, changed=False)
    for task in tasks:
        run.add_event({"host": "gpu1", "task": task, "status": "ok"})
    run.add_event({"host": "gpu1", "task": "Change", "status": "unreachable"})
    if lost:
        cli(root, "last", "--yes")
    else:
        with pytest.raises(UserError, match="changed nothing"):
            cli(root, "last", "--yes")
    assert [of for of, _ in plays.seen] == [run.id] * lost


def test_a_rollback_undone_makes_its_run_stand_again(root, plays):
    first = made(root)
    cli(root, "last", "--yes")
    cli(root, record.listing(root)[0].id, "--yes")
    cli(root, "last", "--yes")
    assert plays.seen[-1] == (first.id, "gpu1")


def test_a_host_that_kept_its_changes_is_still_to_roll_back(root, plays):
    both = made(root, hosts=("gpu1", "gpu2"))
    plays.refused.add("gpu2")
    assert cli(root, "last", "--yes") == END_STATE_MISSED
    plays.refused.clear()
    cli(root, "last", "--yes")
    assert plays.seen == [(both.id, "gpu1"), (both.id, "gpu2"), (both.id, "gpu2")]


def test_what_is_left_over_is_told_with_the_way_on(root, plays, capsys):
    first, second = made(root), made(root)
    plays.refused.add("gpu1")
    for _ in range(2):
        assert cli(root, "last", "--yes") == END_STATE_MISSED
        assert (
            f"`last` is still run {second.id}, of which something is left; to leave it so and go on: "
            f"nodetune rollback {first.id}\n" in capsys.readouterr().err
        )
    assert plays.seen == [(second.id, "gpu1")] * 2


def test_a_run_rolled_back_twice_stands_again_after_a_redo(root, plays):
    run = made(root)
    cli(root, run.id, "--yes")
    back = record.listing(root)[0]
    cli(root, run.id, "--yes")
    cli(root, back.id, "--yes")
    cli(root, "last", "--yes")
    assert [of for of, _ in plays.seen] == [run.id, run.id, back.id, run.id]


def test_a_run_made_to_stand_again_in_part_is_to_roll_back(root, plays, monkeypatch):
    first = made(root)
    cli(root, "last", "--yes")
    redone = Run.create("rollback", {"of": record.listing(root)[0].id}, ["gpu1"], "gpu1,", root)
    redone.undone = []
    redone.add_entries("gpu1", [ENTRY])
    redone.finish(END_STATE_MISSED)
    cli(root, "last", "--yes")
    assert plays.seen == [(first.id, "gpu1")] * 2


def test_all_undoes_what_stands_on_a_host_newest_first(root, plays, capsys):
    first = made(root, hosts=("gpu1", "gpu2"))
    made(root, hosts=("gpu2",))
    third = made(root)
    assert cli(root, "--all", "gpu1", "--yes") == OK
    assert plays.seen == [(third.id, "gpu1"), (first.id, "gpu1")]
    assert "2 changes undone" in capsys.readouterr().out
    with pytest.raises(UserError, match=r"nothing to roll back on gpu1"):
        cli(root, "--all", "gpu1", "--yes")


def test_all_names_the_hosts_that_have_runs(root, plays):
    made(root, hosts=("gpu1", "gpu2"))
    with pytest.raises(UserError, match=r"nothing to roll back on gpu9.*gpu\[1-2\]"):
        cli(root, "--all", "gpu9", "--yes")


def test_all_as_data_is_one_document(root, plays, capsys):
    first, second = made(root), made(root)
    assert cli(root, "--all", "gpu1", "--yes", "--format", "json") == OK
    document = valid("rollback", capsys.readouterr().out)
    assert [each["name"] for each in document["hosts"]] == ["gpu1"]
    assert document["runs"] == [run.id for run in reversed(record.listing(root)) if run.id not in (first.id, second.id)]


def test_a_dry_run_of_all_lists_the_runs(root, plays, capsys):
    first, second = made(root), made(root)
    assert cli(root, "--all", "gpu1", "--dry-run") == OK
    text = capsys.readouterr().out
    assert text.index(second.id) < text.index(first.id)
    assert "/proc/sys/vm/swappiness" in text
    assert text.endswith("dry run: 2 runs would be rolled back on gpu1. Nothing was changed.\n")
    assert plays.seen == []


@pytest.mark.parametrize("words", [[], ["last", "--all", "gpu1"]])
def test_a_rollback_is_of_one_run_or_of_all(root, words):
    with pytest.raises(Exception, match="RUN or --all"):
        cli(root, *words)


def test_the_question_shows_what_would_be_undone(root, plays, typed, capsys):
    run = made(root)
    typed("n\n")
    assert cli(root, "last") == OK
    told = capsys.readouterr().err
    assert told.index("undone: vm.swappiness") < told.index(f"Roll back run {run.id} (apply")
    assert "Nothing was changed" in told
    assert plays.seen == []
    assert len(record.listing(root)) == 1


def test_the_inventory_is_named_before_a_password_is_asked(root, plays, monkeypatch, capsys):
    run = made(root)
    monkeypatch.setattr(passwords, "asked", lambda *_: click.echo("password?", err=True) or "secret")
    cli(root, run.id, "-K", "--yes")
    shown = capsys.readouterr().err
    assert 0 <= shown.index("inventory: gpu1") < shown.index("password?")


def test_a_password_asked_once_is_used_for_all_runs(root, plays, monkeypatch):
    first, second = made(root), made(root)
    asked = []
    monkeypatch.setattr(passwords, "asked", lambda *_: asked.append(1) or "secret")
    assert cli(root, "--all", "gpu1", "-K", "--yes") == OK
    made_now = [run.about["options"]["become"] for run in record.listing(root) if run.id not in (first.id, second.id)]
    assert (made_now, len(asked)) == ([True, True], 1)


def test_where_nothing_would_be_undone_nobody_is_asked(root, plays, typed, capsys):
    run = made(root)
    plays.changes = False
    typed("")
    assert cli(root, run.id) == OK
    assert "0 changes" in capsys.readouterr().out
    assert plays.seen == []


def test_without_a_terminal_nothing_is_asked_of_the_hosts(root, plays):
    made(root)
    with pytest.raises(Exception, match="--yes"):
        cli(root, "last")
    assert plays.dry == []


DAMAGES = {
    "gone": lambda file: file.unlink(),
    "empty": lambda file: file.write_text(""),
    "cut": lambda file: file.write_text(file.read_text()[:40]),
    "another shape": lambda file: file.write_text('{"schema": "nodetune.run/1", "hosts": {"gpu1": 7}}'),
    "a folder": lambda file: (file.unlink(), file.mkdir()),
}


@pytest.mark.parametrize("words", [["last"], ["--all", "gpu1"]])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_record_of_a_later_run_is_not_passed_over(root, plays, words, damage):
    first, second = made(root), made(root)
    DAMAGES[damage](second.folder / "run.json")
    with pytest.raises(DamageError, match=r"run\.json.*what that run did is unknown") as told:
        cli(root, *words, "--yes")
    assert told.value.code == END_STATE_MISSED
    assert cli(root, first.id, "--yes") == OK
    assert [of for of, _ in plays.seen] == [first.id]


def test_a_run_that_was_killed_before_its_record_began_is_in_nobodys_way(root, plays):
    first = made(root)
    (root / "20261123-000099-0000").mkdir()
    assert cli(root, "last", "--yes") == OK
    assert [of for of, _ in plays.seen] == [first.id]


@pytest.mark.parametrize("damage", ["gone", "empty", "a folder"])
def test_a_journal_that_is_lost_is_said_and_stands(root, plays, damage, capsys):
    run = made(root)
    DAMAGES[damage](run.folder / "entries/gpu1.jsonl")
    assert cli(root, "last", "--yes") == END_STATE_MISSED
    said = "".join(capsys.readouterr())
    assert "entries/gpu1.jsonl" in said.replace("\n", "")
    assert cli(root, "last", "--yes") == END_STATE_MISSED
    assert [of for of, _ in plays.seen] == [run.id] * 2


def test_a_journal_of_an_older_version_that_is_lost_shows_by_its_diff(root, plays):
    run = made(root)
    run.add_diffs("gpu1", [{"before": "1\n", "after": "2\n"}])
    about = json.loads((run.folder / "run.json").read_text())
    del about["journals"]
    (run.folder / "run.json").write_text(json.dumps(about))
    (run.folder / "entries/gpu1.jsonl").unlink()
    assert cli(root, run.id, "--yes") == END_STATE_MISSED
