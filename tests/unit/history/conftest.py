"""Histories on both databases, and looks at hosts."""

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from nodetune.api.model import Absent, Each, HostFacts, Unread, Value
from nodetune.history.history import History
from nodetune.history.snapshot import Sorter

START = 20_700 * 86_400
SERVER = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


def value(what):
    return Each({subject: Value(each) for subject, each in what.items()}) if isinstance(what, dict) else Value(what)


@pytest.fixture
def look():
    """Makes a look of facts by name; a dictionary is a value for each subject."""
    sorter = Sorter()

    def made(at, facts, host="n1"):
        known = {
            name: each if isinstance(each, Value | Each | Absent | Unread) else value(each)
            for name, each in facts.items()
        }
        return sorter.look(HostFacts(host, known, {"time": START + at}))

    return made


@pytest.fixture(scope="session")
def server():
    """The URL of a PostgreSQL server that listens on a socket only."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    if not SERVER:
        pytest.skip("PostgreSQL is not installed")
    folder = Path(tempfile.mkdtemp(prefix="nodetune-"))  # the path of a socket is short, and another user goes there
    who = {}
    if not os.geteuid():
        try:
            account = pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
        os.chown(folder, account.pw_uid, account.pw_gid)
        who = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    control = [SERVER[-1] / "pg_ctl", "-D", folder / "data", "-w", "-l", folder / "log"]
    made = [SERVER[-1] / "initdb", "-D", folder / "data", "-U", "tester", "-A", "trust", "--no-sync"]
    subprocess.run(made, check=True, capture_output=True, cwd=folder, **who)
    listens = f"-k {folder} -c listen_addresses= -c fsync=off"
    subprocess.run([*control, "-o", listens, "start"], check=True, cwd=folder, stdout=subprocess.DEVNULL, **who)
    yield f"postgresql://tester@/postgres?host={folder}"
    subprocess.run([*control, "-m", "immediate", "stop"], check=True, cwd=folder, stdout=subprocess.DEVNULL, **who)
    shutil.rmtree(folder)


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def place(request, tmp_path):
    """A new database of each kind."""
    if request.param == "SQLite":
        return str(tmp_path / "history.db")
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
    url = request.getfixturevalue("server")
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("DROP SCHEMA public CASCADE")
        db.execute("CREATE SCHEMA public")
    return url


@pytest.fixture
def history(place):
    with History(place) as found:
        yield found
