"""A journal with damage is refused by name; what an earlier edition wrote, and what a power cut tore, is read."""

import json

import pytest
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


def without_checksums(path):
    """Make the journal one of the edition that wrote none."""
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    assert all(entry.pop("sum") for entry in entries)
    del entries[0]["of"]
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
