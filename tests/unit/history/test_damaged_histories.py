"""Damaged histories, of random kinds: each command says in a line that something is lost, and shows all else."""

import json
import shutil
import time

import pytest

from nodetune.api.model import Each, HostFacts, Value
from nodetune.foundation import paths
from nodetune.foundation.stage_output import Silent
from nodetune.history import keeping
from nodetune.history.connection import Database
from nodetune.history.history import History
from nodetune.history.points import DAY
from nodetune.history.schema import TABLES
from nodetune.history.snapshot import Sorter, of_figures
from tests.support.commands import run
from tests.support.damage import PostgreSQL, SQLite
from tests.support.standing import planted

FAST, MANY = range(24), range(24, 160)
NOW = int(time.time())


def fill(place):
    sorter = Sorter()
    with History(str(place)) as history:
        for day in range(12):
            for host in ("n01", "n02", "n03"):
                dying = 4**day if host == "n02" and day > 6 else day
                facts = {
                    "gpu.pcie_replay_counter": Each({"GPU0": Value(dying * 40), "GPU1": Value(3)}),
                    "gpu.temperature": Each({"GPU0": Value(40 + day), "GPU1": Value(41), "GPU2": Value(40)}),
                    "gpu.serial": Each({"GPU0": Value("a" if day < 5 else "b")}),
                    "sysctl.vm.swappiness": Value(1 if day > 8 else 60),
                    "host.boot_id": Value(str(day // 3)),
                }
                for hour in (0, 6):
                    at = NOW - (12 - day) * DAY + hour * 3600
                    history.record([sorter.look(HostFacts(host, facts, {"time": at}))])
            history.judge(NOW - (12 - day) * DAY + 7 * 3600)
        history.record([of_figures("n01", NOW - 3600, {"verify.gemm.bf16/GPU0": 800.5})])
        sets, done = planted(NOW)
        for each in sets:
            history.conclude(each)
        history.act(done)
        history.thin(NOW)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    place = tmp_path_factory.mktemp("sound") / "fleet.db"
    fill(place)
    return place


@pytest.fixture(scope="module")
def url(server):
    """Gives the URL of a new database with a sound history, and one to damage it by."""
    import psycopg

    def of(name):
        return server.replace("/postgres?", f"/{name}?")

    with psycopg.connect(server, autocommit=True) as db:
        db.execute("CREATE DATABASE sound")
        fill(of("sound"))

        def made(name):
            db.execute(f"DROP DATABASE IF EXISTS {name}")
            db.execute(f"CREATE DATABASE {name} TEMPLATE sound")
            return of(name)

        yield made


@pytest.fixture(autouse=True, scope="module")
def clock():
    """What is said of ages does not change meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: float(NOW))
        yield


READERS = (
    ("history", "--format", "json"),
    ("history",),
    *(("history", host, "--format", "json") for host in ("n01", "n02", "n03")),
    ("history", "n02"),
    ("history", "n02", "--format", "html"),
    ("history", "--format", "csv", "--since", "400d"),
    ("history", "--format", "prometheus"),
    ("status", "--format", "json"),
    ("status",),
    ("status", "n03"),
    ("status", "--format", "csv"),
)


def told(place, readers=READERS):
    found = {}
    for words in readers:
        code, out, err = run(*words, "--history", place)
        out = out.replace(str(place), "fleet.db")
        if words[-1] == "json" and code != 2:
            out = {name: each for name, each in json.loads(out).items() if name != "time"}
        found[words] = code, out, err
    return found


def facts(folder):
    folder.mkdir()
    for host in ("n01", "n02", "n77"):
        content = json.loads((paths.bundled("facts/recorded") / "h200-x4.json").read_text())
        content |= {"host": host}
        content["about"]["time"] = int(time.time())
        (folder / f"{host}.json").write_text(json.dumps(content))
    return folder


def is_named(err):
    return any(
        word in err for word in ("damaged", "newer nodetune", "the file is empty", "not a database", "no such history")
    )


def check(place, known, damage, tmp_path, copy):
    """Run all that reads and writes a damaged history."""
    what = f"{damage.kind}: {damage.said}"
    found = told(place)
    for words, (code, out, err) in found.items():
        assert len(err.splitlines()) <= 3, (what, words, err)
        if code == 2:
            assert is_named(err) or "does not have" in err or "nobody knows" in err, (what, words, err)
        elif words[-1] == "json" and out != known[words][1] and damage.is_typed:
            assert is_named(err), (what, words)
    code, out, err = run("history", "--history", place, f"--repair={copy}")
    assert code == 0 or is_named(err) or "nothing of it can be read" in err, (what, err)
    if code == 0:
        for words, (repaired, _, said) in told(copy).items():
            assert repaired != 2 or "does not have" in said or "nobody knows" in said, (what, words, said)
            assert not is_named(said), (what, words, said)
        if damage.kind in ("value", "utf8") and not damage.said.startswith(("host", "series")):
            assert sum(rows(place, copy)) <= 1, (what, out)
    writes(place, what, tmp_path)


def writes(place, what, tmp_path):
    code, out, err = run("audit", "--facts", tmp_path / "facts", "--history", place, "--format", "json")
    assert code == 1, (what, err)
    assert [host["state"] for host in json.loads(out)["hosts"]] == ["ok"] * 3, what
    sets, done = planted(NOW)
    keeping.keep(
        str(place),
        Silent(),
        measured=[("n03", None, {"verify.gemm.bf16/GPU0": 790.5})],
        concluded=sets[0],
        actions=done,
    )
    for words, (code, _, err) in told(place, READERS[:4]).items():
        assert code != 2 or is_named(err) or "does not have" in err, (what, words, err)


def rows(place, copy):
    """Yield how many rows fewer each table of a copy has."""
    counts = []
    for each in (place, copy):
        db = Database(str(each), make=False, damaged=True)
        counts.append([db._run(f"SELECT count(*) FROM {table}").fetchone()[0] for table in sorted(TABLES)])
        db.close()
    return [before - after for before, after in zip(*counts, strict=True)]


@pytest.fixture(scope="module")
def sound_answers(clock, base):
    found = told(base)
    assert all(code != 2 and not err for code, _, err in found.values())
    assert "n02" in found["history",][1]
    return found


@pytest.mark.parametrize(
    "seed", [*FAST, *(pytest.param(seed, marks=[pytest.mark.slow, pytest.mark.full]) for seed in MANY)]
)
def test_a_damage_of_a_file_is_named_and_loses_nothing_else(base, sound_answers, tmp_path, seed):
    place = tmp_path / "fleet.db"
    shutil.copy(base, place)
    place.chmod(0o600)
    facts(tmp_path / "facts")
    check(place, sound_answers, SQLite(place, seed), tmp_path, tmp_path / "copy.db")


@pytest.mark.parametrize(
    "seed", [*FAST[:8], *(pytest.param(seed, marks=[pytest.mark.slow, pytest.mark.full]) for seed in MANY)]
)
def test_a_damage_of_a_database_is_named_and_loses_nothing_else(url, tmp_path, seed):
    import psycopg

    place = url(f"d{seed}")
    known = told(place)
    facts(tmp_path / "facts")
    with psycopg.connect(place, autocommit=True) as db:
        damage = PostgreSQL(db, seed)
    check(place, known, damage, tmp_path, tmp_path / "copy.db")


def test_a_copy_goes_to_either_kind_of_database_and_continues_there(base, url, server, tmp_path):
    import psycopg

    with psycopg.connect(server, autocommit=True) as db:
        db.execute("DROP DATABASE IF EXISTS empty")
        db.execute("CREATE DATABASE empty")
    empty = server.replace("/postgres?", "/empty?")
    assert "lost: nothing" in run("history", "--history", base, f"--repair={empty}")[1]
    assert "lost: nothing" in run("history", "--history", empty, f"--repair={tmp_path / 'back.db'}")[1]
    assert set(rows(base, empty)) == set(rows(base, tmp_path / "back.db")) == {-1, 0}, "a reason for what is lost"
    fill(empty)
    assert "n02" in run("history", "--history", empty)[1]
    code, _, err = run("history", "--history", base, f"--repair={empty}")
    assert (code, "has a history already" in err) == (2, True)
    code, _, err = run("history", "--history", empty, "--repair")
    assert (code, "give the new FILE" in err) == (2, True)


def test_past_a_damaged_page_the_rest_is_copied(base, tmp_path):
    place = tmp_path / "fleet.db"
    shutil.copy(base, place)
    content = bytearray(place.read_bytes())
    pages = [
        at for at in range(4096, len(content), 4096) if content[at] == 13 and b'"fault"' in content[at : at + 4096]
    ]
    content[pages[1] : pages[1] + 4096] = bytes(4096)
    place.write_bytes(content)
    code, out, err = run("history", "--history", place, "--repair")
    assert code == 0, err
    assert "that cannot be read" in out or "rows of" in out
    kept, every = (Database(str(each), make=False) for each in (tmp_path / "fleet.repaired.db", base))
    count = "SELECT (SELECT count(*) FROM look) + (SELECT count(*) FROM conclusion) + (SELECT count(*) FROM change)"
    assert every.one(count) * 0.5 < kept.one(count) < every.one(count)
    kept.close()
    every.close()
    assert run("history", "--history", tmp_path / "fleet.repaired.db")[2] == ""
