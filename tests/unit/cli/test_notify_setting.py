"""The URL of --notify from a variable or a settings file: who may give it, and that nothing shows it whole."""

import json
import shutil

import pytest

from nodetune.cli import settings
from nodetune.facts.saved import BUNDLED
from tests.support.commandline import nodetune

SECRET = "T0KEN-of-the-site"
URL = f"slack+http://user:{SECRET}@127.0.0.1:1/{SECRET}"
SHOWN = "slack+http://127.0.0.1:1/…"


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The user's own settings file, and a current folder without one."""
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NODETUNE_RUNS", str(tmp_path / "runs"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv(settings.VARIABLE, raising=False)
    monkeypatch.delenv("NODETUNE_NOTIFY", raising=False)
    monkeypatch.setattr("nodetune.report.notify.receiver.WAIT_SECONDS", 0.0)
    folder = tmp_path / ".config/nodetune"
    folder.mkdir(parents=True)
    return folder / "nodetune.toml"


@pytest.fixture
def saved(tmp_path):
    """Facts that nodetune does not bring along."""
    shutil.copy(BUNDLED / "h200-x4.json", tmp_path / "n1.json")
    return ("audit", "--facts", tmp_path / "n1.json", "-s", "clock-unsynchronized", "--fail-on", "never", "-v")


@pytest.mark.parametrize("place", ["file", "variable"])
def test_an_audit_notifies_whom_the_settings_name(own, saved, place):
    if place == "file":
        own.write_text(f'notify = "{URL}"\n')
    done = nodetune(*saved, env={} if place == "file" else {"NODETUNE_NOTIFY": URL})
    assert done.returncode == nodetune(*saved, env={"NODETUNE_CONFIG": ""}).returncode
    assert "127.0.0.1:1 was not notified: Connection refused" in done.stderr
    where = "~/.config/nodetune/nodetune.toml:1" if place == "file" else "NODETUNE_NOTIFY"
    assert f"notify: {SHOWN} ({where})" in done.stderr
    assert SECRET not in done.stdout + done.stderr


def test_the_settings_show_where_notices_go_without_secrets(own):
    own.write_text(f'notify = "{URL}"\n')
    shown, found = nodetune("config"), nodetune("config", "--format", "json")
    assert SHOWN in shown.stdout
    assert json.loads(found.stdout)["settings"]["notify"]["value"] == SHOWN
    assert SECRET not in shown.stdout + found.stdout


def test_bundled_facts_notify_nobody_unless_the_line_asks(own):
    own.write_text(f'notify = "{URL}"\n')
    audit = ("audit", "--facts", "h200-x4", "-s", "clock-unsynchronized", "--fail-on", "never")
    assert "notified" not in nodetune(*audit).stderr
    assert "was not notified" in nodetune(*audit, "--notify", URL).stderr


def test_the_file_of_a_folder_may_not_say_where_notices_go(own, saved):
    with open("nodetune.toml", "w") as stream:
        stream.write(f'notify = "{URL}"\n')
    for words in (saved, ("config",)):
        done = nodetune(*words)
        (line,) = done.stderr.splitlines()
        assert (done.returncode, done.stdout) == (2, "")
        assert line.startswith("nodetune: nodetune.toml:1: notify: ")
        assert "NODETUNE_NOTIFY" in line
        assert SECRET not in line
    named = nodetune("config", env={settings.VARIABLE: "nodetune.toml"})
    assert SHOWN in named.stdout, "a file that someone names is not a folder's"


def test_a_wrong_url_of_the_settings_is_one_line_that_says_where(own):
    own.write_text(f'notify = "teams+https://{SECRET}"\n')
    done = nodetune("config")
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2
    assert line.startswith("nodetune: ~/.config/nodetune/nodetune.toml:1: --notify is not a URL of a receiver")
    assert SECRET not in line


def test_the_settings_show_a_database_without_its_password(own):
    own.write_text(f'history = "postgresql://nodetune:{SECRET}@db/fleet"\n')
    shown = nodetune("config").stdout
    assert "postgresql://…@db/fleet" in shown
    assert SECRET not in shown


def test_the_file_of_a_folder_may_not_send_facts_to_a_database(own, saved):
    with open("nodetune.toml", "w") as stream:
        stream.write(f'history = "postgresql://x:{SECRET}@db/fleet"\n')
    done = nodetune(*saved)
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert line.startswith("nodetune: nodetune.toml:1: history: ")
    assert "NODETUNE_HISTORY" in line
    assert SECRET not in line
