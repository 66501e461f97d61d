"""Progress: a bar on a terminal, events for programs, and nothing elsewhere."""

import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from nodetune.cli import progress, progress_bar, verbosity
from nodetune.foundation import paths
from nodetune.remediation.ansible.events import Event
from tests.support.commandline import nodetune
from tests.support.documents import valid

SOURCE = str(Path(__file__).parents[3])
MACHINE = paths.bundled("facts/recorded") / "h200-x4.json"


@pytest.fixture
def folder(tmp_path):
    """Facts of two hosts, and a file that holds none."""
    for name in ("gpu1", "gpu2"):
        (tmp_path / f"{name}.json").write_text(json.dumps({**json.loads(MACHINE.read_text()), "host": name}))
    (tmp_path / "broken.json").write_text("{")
    return tmp_path


def events(text):
    return [valid("progress", line) for line in text.splitlines() if line.startswith("{")]


@pytest.fixture
def shown(capsys):
    """Run a function with --progress json and return the events."""

    def call(function):
        with click.Context(click.Command("x")) as context:
            context.meta[verbosity._PROGRESS] = verbosity.JSON
            function()
        return events(capsys.readouterr().err)

    return call


def test_every_host_is_an_event_between_start_and_end(folder):
    found = events(nodetune("audit", "--facts", folder, "--progress", "json").stderr)
    assert [each["event"] for each in found] == ["started", "host", "host", "host", "finished"]
    assert found[0]["hosts"] == 3
    outcomes = {each["host"]: each["outcome"] for each in found[1:-1]}
    assert sorted(outcomes.values()) == ["bad facts", "ok", "ok"]
    assert outcomes["broken"] == "bad facts"
    assert {name: found[-1][name] for name in ("done", "failed", "hosts", "phase")} == {
        "done": 3,
        "failed": 1,
        "hosts": 3,
        "phase": "audit",
    }


@pytest.mark.parametrize("words", [[], ["--progress", "auto"], ["--progress", "none"]])
def test_where_nobody_looks_nothing_is_shown(folder, words):
    assert nodetune("audit", "--facts", folder, *words).stderr == ""


@pytest.mark.parametrize(("words", "drawn"), [([], True), (["--progress", "none"], False)])
def test_a_terminal_shows_how_many_hosts_are_done(folder, words, drawn):
    ours, theirs = pty.openpty()
    at_once = "from nodetune.cli import main, progress_bar; progress_bar.DELAY = 0; main.main()"
    command = [sys.executable, "-c", at_once, "audit", "--facts", str(folder), "-o", os.devnull, *words]
    variables = {**os.environ, "PYTHONPATH": SOURCE, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(command, env=variables, stderr=theirs, stdin=subprocess.DEVNULL) as run:
        os.close(theirs)
        seen = b""
        while True:
            try:
                read = os.read(ours, 1 << 16)
            except OSError:  # a terminal whose other end is closed
                break
            if not read:
                break
            seen += read
    os.close(ours)
    assert run.returncode == 3
    assert (b"3 of 3 hosts, 1 not ok" in seen) == drawn


@pytest.mark.parametrize(
    ("seconds", "elapsed", "latest", "done", "says"),
    [
        (0, 30, 30, 3, "about 0:01:30 left"),
        (0, 60, 31, 3, "about 0:03:00 left"),
        (0, 30, 0, 0, ""),
        (0, 1, 1, 3, ""),
        (60, 20, 0, 0, "at most 0:00:40 left"),
        (60, 70, 3, 3, "at most 0:00:00 left"),
    ],
)
def test_the_time_left_follows_from_what_is_done(seconds, elapsed, latest, done, says):
    run = SimpleNamespace(seconds=seconds, elapsed=elapsed, latest=latest)
    task = SimpleNamespace(completed=done, total=12, fields={"run": run})
    assert progress_bar._Left().render(task).plain == says


def test_no_time_left_is_told_while_silent_hosts_are_waited_for(monkeypatch):
    with progress.Progress("audit", 10) as run:
        for number in range(9):
            run.done(f"gpu{number}")
        after = {}
        for seconds in (2.5, 5.5):
            run._since -= seconds - run.elapsed
            run.latest = 2.5
            task = SimpleNamespace(completed=9, total=10, fields={"run": run})
            after[seconds] = progress_bar._Left().render(task).plain
    assert after == {2.5: "about 0:00:00 left", 5.5: ""}


def test_a_host_that_is_done_counts_as_the_latest_news():
    with progress.Progress("audit", 2) as run:
        run._since -= 60
        run.done("gpu1")
        assert 60 <= run.latest <= run.elapsed


def test_a_host_is_done_when_its_play_ends(shown):
    def play():
        with progress.Progress("apply", 3) as run:
            run.heard(Event("a", "Change"))
            run.heard(Event("b", "Change", status="failed", message="no space left"))
            run.heard(Event("c", "Begin", status="unreachable", message="no route"))
            for host in ("b", "a"):
                run.heard(Event(host, "End", status="started"))
                run.heard(Event(host, "End"))

    found = shown(play)
    hosts = [(each["host"], each["outcome"], each["message"]) for each in found if each["event"] == "host"]
    assert hosts == [("b", "failed", "no space left"), ("a", "ok", ""), ("c", "unreachable", "no route")]


def test_a_run_of_stages_names_each_and_plays_end_no_host(shown):
    def provision():
        with progress.Progress("provision", 1, stages=2, plays=False) as run:
            run.stage("packages", 1)
            run.heard(Event("a", "End"))
            run.stage("reboot", 1)
            run.done("a", "reboot failed")

    found = shown(provision)
    assert [each.get("stage") or each["event"] for each in found] == [
        "started",
        "packages",
        "reboot",
        "host",
        "finished",
    ]
    assert (found[-2]["outcome"], found[-1]["failed"]) == ("reboot failed", 1)


def test_an_interrupted_run_still_finishes(shown):
    def interrupted():
        with suppress(KeyboardInterrupt), progress.Progress("audit", 2) as run:
            run.done("a")
            raise KeyboardInterrupt

    found = shown(interrupted)
    assert (found[-1]["event"], found[-1]["done"], found[-1]["hosts"]) == ("finished", 1, 2)
