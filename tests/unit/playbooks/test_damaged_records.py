"""A run's record is damaged, and perhaps the host's own journal too: a rollback undoes all, or says what it does not undo."""

import contextlib
import shutil

import pytest

from nodetune.cli.main import group
from nodetune.foundation import UserError
from nodetune.foundation.exit_codes import END_STATE_MISSED, OK, USAGE
from nodetune.remediation.runs import record
from tests.support import sequences
from tests.support.sequences import NAME


def gone(path, _chance):
    path.unlink()


def emptied(path, _chance):
    path.write_bytes(b"")


def cut(path, chance):
    content = path.read_bytes()
    path.write_bytes(content[: chance.randrange(len(content))])


def without_its_end(path, chance):
    lines = path.read_bytes().splitlines(True)
    path.write_bytes(b"".join(lines[: chance.randrange(len(lines))]))


def garbage_within(path, chance):
    lines = path.read_bytes().splitlines(True)
    lines[chance.randrange(len(lines))] = chance.choice(
        [b"{]\n", b"\0\0\0\n", b"[" * 5000 + b"\n", b"null\n", b"\xff\n"]
    )
    path.write_bytes(b"".join(lines))


def a_line_twice(path, chance):
    lines = path.read_bytes().splitlines(True)
    at = chance.randrange(len(lines))
    path.write_bytes(b"".join([*lines[: at + 1], *lines[at:]]))


def a_line_lost(path, chance):
    lines = path.read_bytes().splitlines(True)
    del lines[chance.randrange(len(lines))]
    path.write_bytes(b"".join(lines))


def lines_in_another_order(path, chance):
    lines = path.read_bytes().splitlines(True)
    chance.shuffle(lines)
    path.write_bytes(b"".join(lines))


def a_flipped_bit(path, chance):
    content = bytearray(path.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def a_folder_in_its_place(path, _chance):
    path.unlink()
    path.mkdir()


def a_link_to_itself(path, _chance):
    path.unlink()
    path.symlink_to(path)


def its_folder_gone(path, _chance):
    shutil.rmtree(path.parent)


KINDS = [
    gone, emptied, cut, without_its_end, garbage_within, a_line_twice, a_line_lost, lines_in_another_order, a_flipped_bit,
    a_folder_in_its_place, a_link_to_itself,
]  # fmt: skip


def roll_back(host, *words):
    """Return the exit code and all that is said, as the command does it."""
    try:
        words = ["rollback", *words, "--yes", "--runs", str(host.records)]
        return group.main(words, prog_name="nodetune", standalone_mode=False), ""
    except UserError as problem:
        return getattr(problem, "code", USAGE), str(problem)


@pytest.mark.parametrize("seed", range(80))
def test_a_damaged_record_is_never_undone_less_in_silence(tmp_path, monkeypatch, capsys, seed):
    host = sequences.Host(tmp_path, monkeypatch, seed)
    host.apply()
    (of,) = record.listing(host.records)
    of.save_changes(NAME, [])
    after, own = host.files(), host.root / f"var/runs/{of.id}/journal.jsonl"
    if seed % 2 and own.exists():
        host.chance.choice([gone, without_its_end, emptied, its_folder_gone])(own, host.chance)
    files = sorted(path for path in of.folder.rglob("*") if path.is_file())
    journals = [path for path in files if path.parent.name == "entries"]
    damaged, kind = host.chance.choice([*files, *4 * journals]), host.chance.choice(KINDS)
    kind(damaged, host.chance)
    capsys.readouterr()
    code, said = roll_back(host, host.chance.choice([of.id, "last", f"--all={NAME}"]))
    said += "".join(capsys.readouterr())
    now = host.files()
    if code == OK:
        assert now == host.before, (kind.__name__, damaged, "said to be undone, and is not")
    else:
        assert all(now.get(path) in (host.before.get(path), after.get(path)) for path in {*host.before, *after, *now})
        assert code == END_STATE_MISSED or "none of these hosts" in said, said
        assert any(
            word in said
            for word in ("none of these hosts", "damaged", "is gone", "is empty", "cannot be read", "run.json")
        ), said
    for words in (["runs"], ["runs", "show", of.id]):
        with contextlib.suppress(UserError):
            group.main([*words, "--runs", str(host.records)], prog_name="nodetune", standalone_mode=False)
