"""An audit with a history: what it keeps, what it says, and that it needs none."""

import json
import re
import shutil
import sqlite3
import subprocess
import sys
import time

import pytest

from nodetune.foundation import paths

DAY = 86_400


def nodetune(*words, cwd, code=None, **more):
    done = subprocess.run(
        [sys.executable, "-m", "nodetune", *map(str, words)], capture_output=True, text=True, cwd=cwd, **more
    )
    assert "Traceback" not in done.stderr
    assert code is None or done.returncode == code, done.stderr
    return done


@pytest.fixture
def facts(tmp_path):
    """Writes facts of a real host as they were this many seconds ago, with some of them changed."""

    def write(ago, host="gpu1", **changed):
        content = json.loads((paths.bundled("facts/recorded") / "h200-x4.json").read_text())
        content |= {"host": host}
        content["about"]["time"] = int(time.time() - ago)
        content["facts"] |= {name: {"value": value} for name, value in changed.items()}
        path = tmp_path / "facts" / f"{host}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content))
        return path

    return write


def since(done):
    return json.loads(done.stdout)["hosts"][0].get("since")


def test_an_audit_says_since_when_a_finding_is_there(tmp_path, facts):
    words = "audit", "--facts", "facts", "--history", "history.db"
    name, check = "sysctl.net.ipv4.tcp_slow_start_after_idle", "slow-start-after-idle-on"
    for ago in (30 * DAY, 20 * DAY, 10 * DAY, 5):
        facts(ago, **{name: 0 if ago == 20 * DAY else 1})
        done = nodetune(*words, "--format", "json", cwd=tmp_path)
        known = since(done)
        if ago == 30 * DAY:
            assert known is None, "the first look knows of nothing older"
        if ago == 20 * DAY:
            assert check not in known
    assert known[check] == pytest.approx(time.time() - 10 * DAY, abs=100)
    told = nodetune(*words, "--full", cwd=tmp_path).stdout
    told += nodetune(*words, cwd=tmp_path).stdout
    assert told.count(time.strftime("since %Y-%m-%d", time.gmtime(known[check]))) == 1, (
        "in full; the short one counts low findings"
    )


def test_without_a_history_an_audit_keeps_and_imports_none(tmp_path, facts):
    code = "import sys; from nodetune.cli.main import main\ntry: main()\nfinally: print([each for each in sys.modules if 'nodetune.history' in each or each == 'sqlite3'])"
    command = [sys.executable, "-c", code, "audit", "--facts", str(facts(5))]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.endswith("[]\n")


def test_the_settings_file_names_the_history_for_all_commands(tmp_path, facts):
    (tmp_path / "nodetune.toml").write_text('history = "kept/history.db"\n')
    (tmp_path / "kept").mkdir()
    nodetune("audit", "--facts", facts(5), cwd=tmp_path)
    assert sqlite3.connect(tmp_path / "kept/history.db").execute("SELECT name FROM host").fetchall() == [("gpu1",)]
    nodetune("audit", "--facts", facts(1, "gpu2"), "--history", "", cwd=tmp_path)
    assert sqlite3.connect(tmp_path / "kept/history.db").execute("SELECT name FROM host").fetchall() == [("gpu1",)]


def test_a_folder_of_pulled_facts_is_kept_and_the_same_facts_only_once(tmp_path, facts):
    for number in range(210):
        facts(60, f"gpu{number}")
    words = "audit", "--facts", "facts", "--history", "history.db", "-v", "--format", "lines"
    assert "history: 210 looks, 0 changes, 0 known already" in nodetune(*words, cwd=tmp_path).stderr
    assert "history: 0 looks, 0 changes, 210 known already" in nodetune(*words, cwd=tmp_path).stderr
    facts(5, "gpu7", **{"sysctl.vm.swappiness": 100})
    assert "history: 1 look, 1 change, 209 known already" in nodetune(*words, cwd=tmp_path).stderr


def test_a_host_whose_clock_is_ahead_is_not_kept(tmp_path, facts):
    done = nodetune("audit", "--facts", facts(-DAY), "--history", "history.db", "-v", cwd=tmp_path)
    assert "history: 0 looks" in done.stderr


@pytest.mark.parametrize("place", ["missing/history.db", "folder"])
def test_a_history_that_cannot_be_opened_is_a_warning(tmp_path, facts, place):
    (tmp_path / "folder").mkdir()
    done = nodetune("audit", "--facts", facts(5), "--history", place, cwd=tmp_path, code=1)
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"history {place}: ")
    assert line.endswith("the audit continues without it")
    assert done.stdout


def test_a_history_that_is_none_ends_the_audit_in_one_line(tmp_path, facts):
    shutil.copy(facts(5), tmp_path / "wrong.db")
    done = nodetune("audit", "--facts", facts(5), "--history", "wrong.db", cwd=tmp_path, code=2)
    assert done.stderr.splitlines() == ["nodetune: history wrong.db: file is not a database"]


@pytest.mark.parametrize("size", ["4k", "20k", "140k"])
def test_a_full_disk_ends_no_audit_and_no_opening(full_disk, size):
    script = "audit", "--facts", str(paths.bundled("facts/recorded").parent / "recorded"), "--history", "history.db"
    done, _ = full_disk(size, *script)
    assert done.returncode == 1, "there are findings, as without a history"
    assert re.search(r"history\.db: (database or disk is full|disk I/O error); the audit continues", done.stderr), (
        done.stderr
    )
