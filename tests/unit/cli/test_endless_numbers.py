"""A number with thousands of digits, wherever it stands, is one short line: never a traceback, nor a date of the far future."""

import json
import tarfile

import pytest

from nodetune.foundation import paths, text
from nodetune.hosts import patterns
from nodetune.remediation.builders import _tuned
from nodetune.remote.slurm import sinfo
from tests.support.commandline import nodetune

DIGITS, HEX = "9" * 5000, "0x" + "f" * 5000
MACHINE = ("audit", "--facts", "h200-x4", "--fail-on", "never")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("NODETUNE_CONFIG", raising=False)
    return tmp_path


def refused(*words, **more):
    done = nodetune(*words, **more)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert len(line) < 400
    return line


@pytest.mark.parametrize("key", ["forks", "timeout", "port", "canary", "become", "profile", "history", "nosuch"])
@pytest.mark.parametrize(
    "value", [HEX, f"-{'9' * 4000}", DIGITS, f"[{HEX}]"], ids=["hex", "negative", "digits", "list"]
)
def test_in_a_settings_file(here, key, value):
    (here / "nodetune.toml").write_text(f"{key} = {value}\n")
    assert "nodetune.toml" in refused("config")


@pytest.mark.parametrize("name", ["FORKS", "PORT"])
def test_in_a_variable_or_an_option(name):
    assert f"NODETUNE_{name}" in refused(*MACHINE, env={f"NODETUNE_{name}": DIGITS})
    assert "--" in refused(*MACHINE, f"--{name.lower()}", DIGITS)


@pytest.mark.parametrize("content", ["checks: {{swap-on: {v}}}", "provision: {{driver: {{branch: {v}}}}}"])
@pytest.mark.parametrize("value", [HEX, DIGITS], ids=["hex", "digits"])
def test_in_a_site_file(here, content, value):
    (here / "site.yml").write_text(content.format(v=value) + "\n")
    told = refused(*MACHINE, "--site", "site.yml")
    assert "line 1" in told
    assert "too many digits" in told


def test_in_a_pattern_of_hosts():
    with pytest.raises(patterns.InventoryError, match="no host or group matches"):
        patterns.pick(f"a[{DIGITS}]", ["a"], {})


def test_in_the_time_of_facts(here):
    facts = json.loads(paths.bundled("facts/recorded/h200-x4.json").read_text("utf-8"))
    facts["host"], facts["about"]["time"] = "n1", 0
    (here / "n1.json").write_text(json.dumps(facts).replace('"time": 0', f'"time": {DIGITS}9'))
    assert "a number has too many digits" in refused("audit", "--facts", "n1.json")
    for moment in (1 << 60, 1 << 37, -1, True):
        facts["about"]["time"] = moment
        facts["facts"]["xid.events"] = {"value": [{"time": 1 << 60, "bdf": "", "xid": 79, "text": "", "count": 1}]}
        (here / "n1.json").write_text(json.dumps(facts))
        assert nodetune("report", "n1", "--facts", "n1.json", "--bundle", "n1.tgz").returncode == 0
        with tarfile.open("n1.tgz") as bundle:
            page = next(each for each in bundle.getmembers() if each.name.endswith((".txt", ".md")))
            assert "at an unknown time" in bundle.extractfile(page).read().decode()


def test_in_an_answer_of_a_program_or_a_host():
    assert sinfo._number(DIGITS) == sinfo._number("²") == 0
    assert not _tuned._differs(f">{DIGITS}", f">{DIGITS}")
    assert text.whole("--5") is None
    assert text.whole("-5") == -5
