"""A journal with damage is refused by name; what an earlier edition wrote, and what a power cut tore, is read."""

import json

import pytest
from nodetune_host import core, journal, lines, lock, session
from nodetune_host.journal import Journal
from nodetune_host.problem import StopError


def a_file(path, content="new\n"):
    return {"change": "file", "path": str(path), "content": content}


@pytest.fixture
def written(do, home, tmp_path):
    """The file of a journal with three changes."""
    (tmp_path / "a").write_text("old\n")
    do([a_file(tmp_path / "a"), a_file(tmp_path / "d" / "b"), a_file(tmp_path / "a", "newer\n")])
    Journal("run-1", str(home)).end()
    return home / "runs/run-1/journal.jsonl"


def before_places(entries):
    """Leave out what no edition without chained checksums wrote."""
    for entry in entries:
        for name in ("of", "place"):
            entry.pop(name, None)


def without_checksums(path):
    """Make the journal one of the edition that wrote none."""
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    assert all(entry.pop("sum") for entry in entries)
    before_places(entries)
    path.write_text("".join(json.dumps(entry, sort_keys=True) + "\n" for entry in entries))


@pytest.mark.parametrize("turn", range(8))
def test_a_flipped_bit_is_refused_or_changes_nothing(written, home, turn):
    whole, entries = written.read_bytes(), Journal("run-1", str(home)).entries()
    refused = []
    for place in range(len(whole)):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << (place + turn) % 8
        written.write_bytes(flipped)
        try:
            assert Journal("run-1", str(home)).entries() == entries, (place, turn)
        except StopError as stop:
            refused.append(str(stop).partition(" at line ")[0])
    assert set(refused) == {f"{written} is damaged"}
    assert len(refused) > 0.9 * len(whole)


def test_a_rollback_of_a_damaged_journal_touches_nothing(do, written, tmp_path):
    written.write_text(written.read_text().replace("newer", "never", 1))
    with pytest.raises(StopError, match=r"journal\.jsonl is damaged at line \d+: restore it or move it away"):
        do.back()
    assert (tmp_path / "a").read_text() == "newer\n"


def test_a_journal_without_checksums_is_rolled_back(do, written, tmp_path):
    without_checksums(written)
    result = do.back()
    assert (result.problems, result.refused) == ([], [])
    assert (tmp_path / "a").read_text() == "old\n"
    assert not (tmp_path / "d").exists()


def test_this_edition_continues_in_a_journal_without_checksums(do, written, home, tmp_path):
    without_checksums(written)
    do([a_file(tmp_path / "c")])
    entries = Journal("run-1", str(home)).entries()
    assert [entry["n"] for entry in entries if "change" in entry] == [0, 1, 2, 3]
    do.back()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "state"]


def test_an_entry_that_no_edition_wrote_is_damage(written, home):
    without_checksums(written)
    written.write_text(written.read_text().replace('"before"', '"bef_re"', 1))
    with pytest.raises(StopError, match="is damaged at line 2"):
        Journal("run-1", str(home)).entries()


def test_a_state_with_numbers_as_keys_is_no_damage(home):
    own = Journal("run-1", str(home))
    own.begin_change("group", a_file("/a"), [], {9: "x", 10: "y"}, {})
    assert Journal("run-1", str(home)).entries()[1]["before"] == {"9": "x", "10": "y"}


def with_sums_of_lines_alone(path):
    """Make the journal one of the edition whose checksums were of the line alone."""
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    for entry in entries:
        del entry["sum"]
    before_places(entries)
    path.write_text(
        "".join(json.dumps(dict(entry, sum=lines.checksum(entry)), sort_keys=True) + "\n" for entry in entries)
    )


def test_a_journal_that_lost_a_line_is_refused(do, written, tmp_path):
    whole = written.read_text().splitlines(keepends=True)
    assert len(whole) == 8
    for lost in range(len(whole) - 1):
        written.write_text("".join(whole[:lost] + whole[lost + 1 :]))
        with pytest.raises(StopError, match=rf"is damaged at line {lost + 1}"):
            do.back()
    assert (tmp_path / "a").read_text() == "newer\n"


def test_a_journal_whose_lines_changed_places_is_refused(do, written):
    whole = written.read_text().splitlines(keepends=True)
    written.write_text("".join([whole[0], *whole[3:5], *whole[1:3], *whole[5:]]))
    with pytest.raises(StopError, match="is damaged at line 2"):
        do.back()


@pytest.mark.parametrize("made", [with_sums_of_lines_alone, without_checksums])
def test_an_older_journal_that_lost_a_change_is_refused(do, written, made):
    made(written)
    whole = written.read_text().splitlines(keepends=True)
    for lost, line in ([0, 1], 1), ([1], 2), ([3, 4], 4):
        written.write_text("".join(text for number, text in enumerate(whole) if number not in lost))
        with pytest.raises(StopError, match=rf"is damaged at line {line}"):
            do.back()


def test_a_journal_with_sums_of_lines_alone_is_rolled_back(do, written, home, tmp_path):
    with_sums_of_lines_alone(written)
    do([a_file(tmp_path / "c")])
    assert [entry["n"] for entry in Journal("run-1", str(home)).entries() if "change" in entry] == [0, 1, 2, 3]
    assert do.back().refused == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "state"]


DEEP = "[" * 100_000


@pytest.mark.parametrize(
    "line",
    [DEEP, '{"n": 0, "ok": ' + DEEP, "[]", "7", '{"n": "x", "ok": true}', '{"run": 1, "since": 0, "machine": "", "boot": ""}',
     '{"n": 0, "group": "g", "change": [], "checks": [], "before": 1, "after": 1}',
     '{"n": 0, "group": "g", "change": {}, "checks": [], "before": 1, "after": 1}', '{"group": "g", "hook": {}}',
     '{"ended": "x"}'],
)  # fmt: skip
def test_a_line_of_anything_is_damage(do, written, line):
    written.write_text(written.read_text().splitlines()[0] + "\n" + line + "\n")
    with pytest.raises(StopError, match="is damaged at line 2"):
        do.back()


@pytest.mark.parametrize("state", [None, [], {}, {"content": 7, "mode": "x", "uid": "", "gid": []}, "text"])
def test_a_state_that_is_none_stops_the_rollback_by_its_change(do, written, tmp_path, state):
    without_checksums(written)
    text = written.read_text().splitlines()
    text[1] = json.dumps(dict(json.loads(text[1]), before=state), sort_keys=True)
    written.write_text("\n".join(text) + "\n")
    with pytest.raises(StopError, match=rf"journal is damaged at change 0 \({tmp_path}/a\): nothing is undone"):
        do.back()
    assert (tmp_path / "a").read_text() == "newer\n"


@pytest.fixture
def host(home, tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "HOME", str(home))
    monkeypatch.setattr(lock, "FOLDER", str(tmp_path / "lock"))


@pytest.mark.parametrize(
    "entries",
    [[{"n": 0}], [{"change": {"change": "file"}}], [{"since": 1}], [{"n": 0, "done": 1}], [{"n": "0", "ok": 1}], [{"hook": 1}],
     [{"n": n, "group": "g", "change": a_file("/x"), "before": 1, "after": 1} for n in (0, 2)]],
)  # fmt: skip
def test_a_damaged_copy_of_the_controller_is_refused(host, entries):
    given = {
        "run": "back-1",
        "of": "run-1",
        "entries": entries,
        "force": False,
        "guard": {},
        "guarded": [],
        "timed": None,
    }
    with pytest.raises(StopError, match="controller's copy of the journal of run run-1 is damaged: nothing is undone"):
        session.revert(given, core.Result(), True)


def test_a_killed_runs_journal_of_anything_is_told(host, written):
    without_checksums(written)
    text = written.read_text().splitlines()
    text[1] = json.dumps(dict(json.loads(text[1]), change={"change": "file", "path": 7}, before={"folder": 7}))
    written.write_text("\n".join(text[:2]) + "\n")
    assert session.begin("next", "me", "", False)[0]["did"] == ["{'change': 'file', 'path': 7}"]


@pytest.mark.parametrize(
    "text",
    [DEEP, "[]", "7", "null", "{}", '{"run": 1, "controller": "me", "since": 0}', '{"run": "x", "controller": "me", "since": 1e99}',
     '{"run": "x", "controller": "me", "since": 0, "heard": "x"}', '{"run": "x"}', '{"run": "x", "controller": "me", "since": NaN}'],
)  # fmt: skip
def test_a_damaged_lock_is_one_line_that_says_what_to_do(host, tmp_path, text):
    (tmp_path / "lock").mkdir()
    (tmp_path / "lock/lock").write_text(text)
    with pytest.raises(
        StopError, match=r"lock/lock (is damaged|cannot be read \(.*\)): if no other run is active, remove it$"
    ):
        session.begin("next", "me", "", False)


@pytest.mark.parametrize("text", [DEEP, "[]", "7", '["a"]', "{"])
def test_damaged_pending_handlers_are_none(host, home, text):
    home.mkdir()
    (home / "owed.json").write_text(text)
    assert not Journal("run-1").is_pending({"change": "run", "run": "update-grub"})


def given(**more):
    """What a rollback of run-1 is given."""
    return {
        "run": "back-1",
        "of": "run-1",
        "entries": [],
        "force": False,
        "guard": {},
        "guarded": [],
        "timed": None,
        "after": [],
        **more,
    }


@pytest.mark.parametrize("damage", ["gone", "empty", "without its end"])
def test_a_journal_that_the_controller_knows_to_be_longer_is_damage(host, written, tmp_path, damage):
    whole = Journal("run-1").entries()
    if damage == "gone":
        written.unlink()
    else:
        written.write_text("".join(written.read_text().splitlines(True)[: 3 if damage != "empty" else 0]))
    with pytest.raises(StopError, match=r"run-1 (has \d of 8 entries here.*nothing is undone|changed is unknown)"):
        session.revert(given(least=len(whole)), core.Result(), True)
    assert (tmp_path / "a").read_text() == "newer\n"
    if damage != "empty":
        result = core.Result()
        session.revert(given(least=8, entries=whole), result, True)
        assert (result.journaled, result.problems, result.refused) == (8, [], [])


@pytest.mark.parametrize("damage", ["", "{}\n"])
def test_a_playbooks_run_with_a_damaged_journal_is_not_skipped(host, do, home, tmp_path, damage):
    for number in (1, 2):
        do([a_file(tmp_path / "a", f"{number}\n")], run=f"ansible-irq-20261128-00000{number}")
    (home / "runs/ansible-irq-20261128-000002/journal.jsonl").write_text(damage)
    session.begin("next", "me", "", False)
    standing = session.standing("ansible-irq")
    assert standing == ["ansible-irq-20261128-000002", "ansible-irq-20261128-000001"]
    with pytest.raises(StopError, match="restore it or move it away"):
        session.revert(given(of=standing[0]), core.Result(), True)
