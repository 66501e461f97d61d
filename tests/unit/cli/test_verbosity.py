"""-q and -v: what a command says besides its result."""

import io
import re
import sys

import pytest

from nodetune.cli import verbosity
from nodetune.cli.progress import Progress
from nodetune.remediation.ansible.events import Event
from tests.support.commandline import nodetune

HERE = ("-i", "localhost", "-s", "max-map-count-low", "--fail-on", "never")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """terminal(quiet=True) makes standard error a terminal, for a command line with these options."""

    def make(verbose=False, quiet=False):
        found = Terminal()
        monkeypatch.setattr(sys, "stderr", found)
        monkeypatch.setattr(verbosity._state, "verbose", verbose)
        monkeypatch.setattr(verbosity._state, "quiet", quiet)
        return found

    return make


def event(**more):
    return Event(**{"host": "gpu1", "task": "Apply", "item": "vm.swappiness", "changed": True, "seconds": 0.4, **more})


def test_quiet_leaves_the_result_only(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "written to" in nodetune("audit", *HERE, "-o", "a.txt").stderr
    done = nodetune("audit", *HERE, "-o", "a.txt", "-q")
    assert (done.stdout, done.stderr) == ("", "")
    assert "localhost  profile" in (tmp_path / "a.txt").read_text()
    assert "localhost  profile" in nodetune("audit", *HERE, "-q").stdout


def test_quiet_keeps_errors():
    done = nodetune("audit", "-q", "-i", "127.0.0.1:1", "--timeout", 60)
    assert "refused" in done.stdout
    assert done.returncode == 3
    assert nodetune("facts", "-q", "-i", "127.0.0.1:1", "--timeout", 60).stderr.startswith("127.0.0.1: refused")


def test_verbose_names_sources_and_the_time_of_each_host(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "site.yml").write_text("checks: {}\n")
    (tmp_path / "hosts.ini").write_text("a ansible_connection=local\nb ansible_host=127.0.0.1 ansible_port=1\n")
    (tmp_path / "nodetune.toml").write_text('inventory = "hosts.ini"\nsite = "site.yml"\n')
    done = nodetune("audit", "-v", "-s", "max-map-count-low", "--timeout", 60)
    told = [re.sub(r"\d+\.\d s", "T", line.strip()) for line in done.stderr.splitlines()]
    assert "T  inventory: hosts.ini (nodetune.toml:1)" in told
    assert "T  site files: site.yml" in told
    assert "T  inventory hosts.ini: read in T; 2 hosts selected" in told
    assert "T  a: ok in T" in told
    assert any(line.startswith("T  b: refused in T: 127.0.0.1 port 1") for line in told)
    assert "T  " not in re.sub(r"\d+\.\d s", "T", done.stdout)


def test_the_next_command_is_no_longer_verbose(capsys):
    nodetune("audit", "-v", *HERE)
    assert nodetune("audit", *HERE).stderr == ""


def test_quiet_and_verbose_contradict_each_other():
    done = nodetune("audit", "-q", "-v")
    assert done.returncode == 2
    assert "-q and -v contradict each other" in done.stderr


def test_quiet_shows_no_progress_on_a_terminal(terminal):
    shown = terminal(quiet=True)
    with Progress("apply", 1) as progress:
        progress.heard(event())
    verbosity.note("written")
    assert shown.getvalue() == ""


def test_verbose_has_each_step_of_an_apply_on_a_line(terminal):
    shown = terminal(verbose=True)
    with Progress("apply", 1) as progress:
        progress.heard(event())
        progress.heard(event(status="failed", changed=False, message="no \x1b[2Jspace"))
    lines = [line[line.index("gpu1") :] for line in shown.getvalue().splitlines()]
    assert lines == [
        "gpu1: apply vm.swappiness: ok, changed in 0.4 s",
        "gpu1: apply vm.swappiness: failed in 0.4 s: no \\x1b[2Jspace",
    ]


def test_every_command_that_reaches_hosts_takes_both():
    for words in (["audit"], ["apply"], ["verify"], ["provision"], ["guard", "install"], ["guard", "status"], ["lock"]):
        text = nodetune(*words, "--help").stdout
        assert "-q, --quiet" in text
        assert "-v, --verbose" in text
