"""Writers at the same time, a writer that is killed, a disk that is full: nothing committed is lost."""

import json
import os
import signal
import sqlite3
import subprocess
import sys

import pytest

from nodetune.history.connection import HistoryError
from nodetune.history.history import History

WRITER = """
import sys
from nodetune.api.model import Each, HostFacts, Value
from nodetune.history.snapshot import Sorter
from nodetune.history.history import History

place, own, turns = sys.argv[1], sys.argv[2], int(sys.argv[3])
sorter = Sorter()
with History(place) as history:
    for turn in range(turns):
        facts = {"gpu.pcie_replay_counter": Each({f"GPU{at}": Value(turn * at) for at in range(8)}), f"sysctl.{own}": Value(turn)}
        hosts = [f"{name}{number}" for name in (own, "both") for number in range(5)]
        done = history.record([sorter.look(HostFacts(host, facts, {"time": 1000 + turn})) for host in hosts])
        print(done.looks, flush=True)
"""


def writer(place, own, turns):
    command = [sys.executable, "-c", WRITER, place, own, str(turns)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def count(place, what="count(*)"):
    with History(place) as history:
        return history._db.one(f"SELECT {what} FROM look")


def test_two_controllers_write_at_the_same_time(place):
    writers = [writer(place, own, 30) for own in ("a", "b")]
    said = [each.communicate() for each in writers]
    assert [each.returncode for each in writers] == [0, 0], said
    looks = sum(int(line) for out, _ in said for line in out.split())
    assert looks == count(place)
    assert 10 * 30 + 5 <= looks <= 15 * 30, "the common hosts: from one of the two, for each look once"


@pytest.mark.parametrize("after", [1, 4, 9])
def test_a_killed_writer_loses_nothing_that_was_committed(place, after):
    running = writer(place, "a", 10**6)
    lines = [running.stdout.readline() for _ in range(after)]
    os.kill(running.pid, signal.SIGKILL)
    rest, _ = running.communicate()
    committed = sum(map(int, lines)) + sum(map(int, rest.split()))
    there = count(place)
    assert there >= committed >= 10 * after
    assert there % 10 == 0, "no look of half a batch"
    if not place.startswith("postgresql"):
        assert sqlite3.connect(place).execute("PRAGMA integrity_check").fetchall() == [("ok",)]


FULL = """
import json, os, sys
sys.argv = ["-", sys.argv[1] + "/history.db", "a", "100000"]
from nodetune.history.connection import HistoryError
try:
    exec(WRITER)
except HistoryError as problem:
    print(json.dumps(str(problem)))
with open(os.path.dirname(sys.argv[1]) + "/ballast", "w"): pass
with History(place) as history:
    print(history._db.one("SELECT count(*) FROM look"), history._db.one("PRAGMA integrity_check"))
    done = history.record([sorter.look(HostFacts("a0", facts, {"time": 10**9}))])
    print(done.looks)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a disk takes root")
def test_a_full_disk_loses_nothing_and_the_history_continues(tmp_path):
    ballast = f"dd if=/dev/zero of={tmp_path}/ballast bs=64k count=8 2>/dev/null"
    code = f"WRITER = {WRITER!r}\n{FULL}"
    inside = f'mount -t tmpfs -o size=2m none {tmp_path} && {ballast} && exec "$0" "$@"'
    command = ["unshare", "-m", "sh", "-c", inside, sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip(f"no disk of its own: {done.stderr.strip()}")
    *looks, problem, found, again = done.stdout.splitlines()
    assert "full" in json.loads(problem), done.stderr
    assert len(looks) > 5
    assert found.split() == [str(sum(map(int, looks))), "ok"]
    assert again == "1"


@pytest.mark.parametrize(
    "made", ["create table bookmarks (a)", "create table schema_version (version text)", "create table look (a)"]
)
def test_a_database_of_another_program_is_left_as_it_is(tmp_path, made):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute(made)
        other.execute(f"insert into {made.split()[2]} values ('v2.1')")
    before = path.read_bytes()
    with pytest.raises(HistoryError, match=r"other\.db: a database of another program, not a history of nodetune"):
        History(str(path), make=False)
    if "schema_version" not in made:
        assert path.read_bytes() == before


def test_a_damaged_look_is_left_out_and_named_and_the_next_one_is_kept(place, look):
    with History(place) as history:
        history.record([look(0, {"gpu.temperature": {"GPU0": 50}})])
        with history._db.writing():
            history._db.change("UPDATE look SET packed = ?", (b"\x00\xff",))
        assert history.series("n1", "gpu.temperature/GPU0") == []
        history.record([look(900, {"gpu.temperature": {"GPU0": 51}})])
        assert [point.high for point in history.series("n1", "gpu.temperature/GPU0")] == [51]
        assert "damaged: 1 row of look: nodetune history" in history._db.damage
