"""A history in PostgreSQL that fails: no audit waits without end or ends, and no message has a password."""

import contextlib
import json
import socket
import tempfile
import threading
import time

import pytest

from nodetune.foundation import paths
from nodetune.history import connection, postgres
from nodetune.history.connection import Database, HistoryError, PlaceError
from nodetune.history.history import History
from tests.support.commands import run

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
SECRET = "s3cr3t"


@pytest.fixture
def facts(tmp_path):
    content = json.loads((paths.bundled("facts/recorded") / "h200-x4.json").read_text())
    content["about"]["time"] = int(time.time())
    path = tmp_path / "facts.json"
    path.write_text(json.dumps(content))
    return path


@pytest.fixture
def patience(monkeypatch):
    """Waits are short, but for those of the test's own."""
    monkeypatch.setattr(connection, "WAIT_SECONDS", 1)
    monkeypatch.setattr(postgres, "ANSWER_SECONDS", 1)


@pytest.fixture
def database(server):
    """The URL of a new, empty database."""
    with psycopg.connect(server, autocommit=True) as db:
        db.execute("DROP DATABASE IF EXISTS limits")
        db.execute("CREATE DATABASE limits")
    return server.replace("/postgres?", "/limits?")


def audit(facts, url):
    return run("audit", "--facts", facts, "--history", url)


@pytest.mark.parametrize(
    "lock",
    [
        "SELECT pg_advisory_xact_lock(7001)",
        "LOCK TABLE host IN ACCESS EXCLUSIVE MODE",
        "LOCK TABLE schema_version IN ACCESS EXCLUSIVE MODE",
    ],
)
def test_an_audit_waits_for_a_lock_no_longer_than_for_a_file(database, patience, facts, lock):
    History(database).close()
    with psycopg.connect(database) as other:
        other.execute(lock)
        code, out, err = audit(facts, database)
    assert code == 1, err
    assert "lock timeout; the audit continues without it" in err
    assert out


class Proxy:
    """A server between: forwards until it is `silent`."""

    def __init__(self, folder, to):
        self.silent = threading.Event()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{folder}/.s.PGSQL.5432")
        self._listener.listen()
        self._to, self._kept = f"{to}/.s.PGSQL.5432", [self._listener]
        threading.Thread(target=self._serve, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for each in self._kept:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                here, _ = self._listener.accept()
                there = socket.socket(socket.AF_UNIX)
                self._kept += [here, there]
                there.connect(self._to)
                for one, other in ((here, there), (there, here)):
                    threading.Thread(target=self._forward, args=(one, other), daemon=True).start()

    def _forward(self, one, other):
        with contextlib.suppress(OSError):
            while content := one.recv(1 << 16):
                if not self.silent.is_set():
                    other.sendall(content)


def test_a_server_that_falls_silent_ends_no_audit(database, patience, facts):
    with tempfile.TemporaryDirectory(prefix="nt-") as folder, Proxy(folder, database.partition("host=")[2]) as proxy:
        url = f"postgresql://tester:{SECRET}@/limits?host={folder}"
        with History(url) as history:
            proxy.silent.set()
            with pytest.raises(HistoryError, match="the server does not answer"):
                history.hosts()
            with pytest.raises(HistoryError, match="connection is closed"):
                history.act([])
        code, _, err = audit(facts, url)
    assert code == 1
    assert "timeout expired; the audit continues without it" in err
    assert SECRET not in err


def test_a_database_without_an_encoding_is_as_any_other(server, facts):
    with psycopg.connect(server, autocommit=True) as db:
        db.execute("DROP DATABASE IF EXISTS ascii")
        db.execute("CREATE DATABASE ascii ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
    url = server.replace("/postgres?", "/ascii?")
    code, _, err = audit(facts, url)
    assert (code, "history" in err) == (1, False), err
    host = json.loads(facts.read_text())["host"]
    code, out, err = run("history", "--history", url)
    assert (code, err) == (0, "")
    assert host in out


@pytest.fixture(params=["down", "closing", "mute"])
def failing(request):
    """The address of a server that is down, that ends each connection at once, or that says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        if request.param == "down":
            yield "127.0.0.1:1"
        if request.param == "mute":
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        if request.param == "closing":

            def serve():
                with contextlib.suppress(OSError):
                    while True:
                        listener.accept()[0].close()

            threading.Thread(target=serve, daemon=True).start()
            yield f"127.0.0.1:{listener.getsockname()[1]}"
            listener.shutdown(socket.SHUT_RDWR)


def test_a_server_that_cannot_be_reached_is_a_warning(facts, patience, failing):
    code, out, err = audit(facts, f"postgresql://nodetune:{SECRET}@{failing}/fleet")
    assert code == 1, err
    assert out
    assert f"history postgresql://{failing}/fleet: " in err
    assert "the audit continues without it" in err
    assert SECRET not in err


@pytest.mark.parametrize(
    ("role", "said"), [("closed NOLOGIN", "not permitted to log in"), ("weak LOGIN", "permission denied")]
)
def test_a_user_without_rights_is_a_warning(server, database, facts, role, said):
    name = role.split()[0]
    with psycopg.connect(server, autocommit=True) as db:
        db.execute(f"DROP ROLE IF EXISTS {name}")
        db.execute(f"CREATE ROLE {role}")
    code, _, err = audit(facts, database.replace("tester@", f"{name}:{SECRET}@"))
    assert code == 1, err
    assert said in err
    assert "the audit continues without it" in err
    assert SECRET not in err
    assert name not in err, "host and database alone"


def test_a_database_of_another_program_is_named_as_such_and_stays_as_it_is(database, facts):
    with psycopg.connect(database, autocommit=True) as db:
        db.execute("CREATE TABLE bookmarks (id int)")
    code, _, err = audit(facts, database)
    assert code == 2
    assert "a database of another program, not a history of nodetune: name another database" in err
    with psycopg.connect(database) as db:
        assert db.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall() == [("bookmarks",)]


FORMS = [
    f"postgresql://nodetune:{SECRET}@127.0.0.1:1/fleet",
    f"postgresql://127.0.0.1:1/fleet?user=nodetune&password={SECRET}",
    f"postgresql://127.0.0.1:1/fleet?password=a@{SECRET}",
    f"postgresql://nodetune:{SECRET}/x@127.0.0.1:1/fleet",
    f"postgresql://nodetune:x/{SECRET}@127.0.0.1:1/fleet",
    f"postgresql://nodetune:{SECRET}%zz@127.0.0.1:1/fleet",
    f"postgresql://nodetune:x@{SECRET}@127.0.0.1:1/fleet",
    f"postgresql://nodetune:x?{SECRET}@127.0.0.1:1/fleet",
    f"postgresql://nodetune:x#{SECRET}@127.0.0.1:1/fleet",
    f"PostgreSQL://nodetune:{SECRET}@127.0.0.1:1/fleet",
    f"POSTGRES://nodetune:{SECRET}@127.0.0.1:1/fleet",
    f"postgresql+psycopg://nodetune:{SECRET}@127.0.0.1:1/fleet",
    f"postgresql:/nodetune:{SECRET}@127.0.0.1:1/fleet",
    f"mysql://nodetune:{SECRET}@127.0.0.1:1/fleet",
    f"host=127.0.0.1 port=1 dbname=fleet user=nodetune password={SECRET}",
    f"postgresql://nodetune:{SECRET}",
    f"postgresql://nodetune:{SECRET}@127.0.0.1:1/fleet?sslmode={SECRET}",
]


@pytest.mark.parametrize("url", FORMS)
def test_no_message_has_a_part_of_a_url_but_its_host_and_database(facts, monkeypatch, patience, url):
    said = [audit(facts, url), run("history", "--history", url), run("status", "--history", url, facts)]
    monkeypatch.setenv("NODETUNE_HISTORY", url)
    said += [
        run("config"),
        run("config", "--format", "json"),
        run("audit", "--facts", facts, "-v"),
        run("history", "--repair"),
    ]
    every = "".join(f"{out}{err}" for _, out, err in said)
    assert SECRET not in every
    assert "history postgresql://" in every


def test_the_url_may_have_its_scheme_in_capitals(database):
    History(database.replace("postgresql", "PostgreSQL")).close()
    db = Database(database, make=False)
    assert "host" in db.tables()
    db.close()


@pytest.mark.parametrize("url", ["postgresql://h:port/x", "postgresql://u:p%zz@h/x", "mysql://h/x", "postgresql:h"])
def test_what_is_no_url_of_postgresql_ends_an_audit_in_one_line(facts, url):
    code, _, err = audit(facts, url)
    assert code == 2
    assert "not a URL of PostgreSQL: give postgresql://USER@HOST/DATABASE" in err
    with pytest.raises(PlaceError):
        Database(url)


def test_a_controller_that_died_in_a_transaction_keeps_others_out_for_minutes_at_most(database):
    db = Database(database)
    known = [db.one(f"SHOW {name}_timeout") for name in ("lock", "statement", "idle_in_transaction_session")]
    db.close()
    assert known == ["1min", "70s", "10min"]
