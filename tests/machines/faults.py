"""What the tests of faults share: nodetune run as a user runs it, and what a machine looks like before and after.

A run is cut at a moment by killing nodetune, or by taking the machine's power. Whatever the moment, every file must be
its old self or its new self, the next run must say what the dead one did and go on, and both must come back out.
"""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.machines import inventory
from tests.machines.machine import Machine
from tests.machines.place import until

NODETUNE = str(Path(sys.executable).with_name("nodetune"))
PLAYS = Path("/dev/shm")
SECONDS = 1500
"""For anything: generous, as two cores may have other work."""
FREE = ("numa-balancing-on", "slow-start-after-idle-on", "swappiness-high")
RESTARTING = ("open-files-low", "remove-ipc-on")
SEVERAL = (*FREE, *RESTARTING)
"""Checks whose fixes are quick, and between them write files, kernel values and drop-ins, and restart a service."""

FILES = "find /etc /usr/local -type f -printf '%p %m %u:%g\\n' -exec sha256sum {} + | sort"
LOGIND = "org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager RemoveIPC"
VALUES = f"""
sysctl vm.swappiness kernel.numa_balancing net.ipv4.tcp_slow_start_after_idle
busctl get-property {LOGIND}
"""
LOCK = "/run/nodetune/lock"
JOURNAL = "/var/lib/nodetune/runs/{run}/journal.jsonl"
Moment = Callable[[subprocess.Popen, str], None]
"""Waits for a moment of a run, which has a process here and a name."""
LEFT = f"find / -xdev -name '*.nodetune-part' 2>/dev/null; ls {LOCK} 2>/dev/null"


class Site:
    """One machine, a folder of runs, and the ways to log in."""

    def __init__(self, machine: Machine, folder: Path):
        self.machine, self.folder = machine, folder
        self.runs = folder / "runs"
        self.environment = {**os.environ, "NODETUNE_RUNS": str(self.runs), "COLUMNS": "300"}
        self.inventory = self.logins("root")

    def logins(self, user: str, **variables: Any) -> Path:
        path = self.folder / f"{user}.yml"
        return inventory.write(path, [self.machine], user=user, **variables)

    def words(self, command: str, *more: str, logins: Path | None = None) -> list[str]:
        return [NODETUNE, command, *more, "-i", str(logins or self.inventory), "-b", "--timeout", "240", "--yes"]

    def start(self, command: str, *more: str, **given: Any) -> subprocess.Popen:
        """nodetune in a process group of its own; its answer is JSON."""
        words = [*self.words(command, *more, **given), "--format", "json"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
        return subprocess.Popen(words, env=self.environment, text=True, start_new_session=True, **pipes)

    def nodetune(self, command: str, *more: str, **given: Any) -> "Answer":
        return ended(self.start(command, *more, **given))

    def apply(self, checks: tuple[str, ...], *more: str, **given: Any) -> "Answer":
        return self.nodetune("apply", *selected(checks), *more, **given)

    def roll_back(self, run: str, *more: str) -> "Answer":
        return self.nodetune("rollback", run, *more)

    def says(self, command: str) -> str:
        return self.machine.ssh(command, check=False).stdout.strip()

    def files(self) -> dict[str, tuple[str, ...]]:
        """Path → mode, owner and digest of every file of /etc and /usr/local."""
        found: dict[str, tuple[str, ...]] = {}
        for line in self.says(FILES).splitlines():
            first, _, rest = line.partition(" ")
            path, told = (first, rest) if first.startswith("/") else (rest.strip(), first)
            found[path] = (*found.get(path, ()), told)
        return {path: tuple(sorted(told)) for path, told in found.items()}

    def values(self) -> str:
        return self.says(VALUES)

    def left_behind(self) -> str:
        """Half-written files and locks on the machine."""
        return self.says(LEFT)

    def run_ids(self) -> set[str]:
        return (
            {each.name for each in self.runs.iterdir() if (each / "run.json").exists()} if self.runs.exists() else set()
        )

    def begin(self, command: str, *more: str, **given: Any) -> tuple[subprocess.Popen, str]:
        """Start nodetune, and wait until its run is recorded: from then on it may touch the machine."""
        before = self.run_ids()
        process = self.start(command, *more, **given)
        until("the run is recorded", lambda: self.run_ids() - before or process.poll() is not None, SECONDS, every=0.01)
        found = self.run_ids() - before
        assert found, ended(process)
        return process, found.pop()

    def at_work(self, run: str) -> float:
        """For how long a run worked on the machine, in seconds from its record on: what follows only reads."""
        lines = (self.runs / run / "events.jsonl").read_text().splitlines()
        ends = [event["time"] for event in map(json.loads, lines) if event["task"] == "End"]
        started = json.loads((self.runs / run / "run.json").read_text())["started"]
        return (datetime.fromisoformat(ends[-1]) - datetime.fromisoformat(started)).total_seconds() + 1

    def kill(self, process: subprocess.Popen) -> None:
        """SIGKILL to nodetune alone; returns when all that it had started is gone as well."""
        process.kill()
        process.communicate()
        until("all that the killed run had started ends", lambda: not self.processes())
        assert not self.play_folders(), "the folder of a play, which may hold passwords, outlived its run"

    def processes(self) -> list[int]:
        """All processes on this computer that came of this site's runs."""
        mark = f"NODETUNE_RUNS={self.runs}\0".encode()
        found = []
        for each in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if mark in each.read_bytes():
                    found.append(int(each.parent.name))
        return found

    def play_folders(self) -> list[Path]:
        return [each for each in PLAYS.glob("nodetune-play-*") if self._is_ours(each)]

    def _is_ours(self, folder: Path) -> bool:
        with contextlib.suppress(OSError):
            return str(self.folder) in (folder / "hosts.yml").read_text()
        return False

    def cut_power(self, process: subprocess.Popen) -> None:
        """Take the machine's power, and give it back when nodetune has noticed."""
        self.machine.power_cut()
        answer = ended(process)
        assert answer.code == 4, answer
        self.machine.power_on()

    @contextlib.contextmanager
    def held_still(self, process: subprocess.Popen):
        """nodetune and all that it started stand still meanwhile."""
        stopped = [process.pid, *self.processes()]
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in stopped:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)


class Answer:
    """What nodetune said: `code`, `error` (its standard error), `data` (its JSON), and what became of each check."""

    def __init__(self, code: int, output: str, error: str):
        self.code, self.error = code, error
        self.data: dict[str, Any] = json.loads(output) if output.strip().startswith("{") else {}
        self.outcomes = {step["check"]: step["outcome"] for step in self.data.get("steps", ())}
        self.reasons = {step["check"]: step["reason"] for step in self.data.get("steps", ())}

    @property
    def run(self) -> str:
        return self.data["run"]

    def __repr__(self) -> str:
        return f"exit {self.code}\n{json.dumps(self.data, indent=1)[:6000]}\n{self.error[-3000:]}"


def ended(process: subprocess.Popen) -> Answer:
    try:
        output, error = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    assert "Traceback" not in error, error
    return Answer(process.returncode, output, error)


def selected(checks: tuple[str, ...]) -> list[str]:
    words = [word for check in checks for word in ("-s", check)]
    return [*words, "--max-disruption", "service-restart"] if set(checks) - set(FREE) else words


class Cycle:
    """The old and the new state of a machine, from one undisturbed apply; then as many cut ones as wanted."""

    def __init__(self, site: Site):
        self.site = site
        self.old_files, self.old_values = site.files(), site.values()
        process, run = site.begin("apply", *selected(SEVERAL))
        answer = ended(process)
        self.seconds = site.at_work(run)
        self.changes = int(site.says(f"grep -c '\"before\":' {JOURNAL.format(run=run)}"))
        assert (answer.code, set(answer.outcomes.values())) == (0, {"fixed"}), answer
        self.new_files, self.new_values = site.files(), site.values()
        assert self.new_values != self.old_values
        assert self.new_files != self.old_files
        self.take_back(run)

    def take_back(self, *runs: str) -> None:
        """Roll back, newest first: afterwards everything is as it was."""
        for run in runs:
            answer = self.site.roll_back(run)
            assert answer.code == 0, answer
        self.assert_is(self.old_files, self.old_values)

    def assert_is(self, files: dict[str, tuple[str, ...]], values: str, may_be_left: str = "") -> None:
        found = self.site.files()
        differing = {path for path in {*found, *files} if found.get(path) != files.get(path)}
        assert not differing
        assert self.site.values() == values
        assert self.site.left_behind() in ("", may_be_left)

    def assert_files_are_whole(self) -> None:
        """Old or new. What grew next to a file, under the name that the next run removes, is neither."""
        found = self.site.files()
        for path in {*found, *self.old_files, *self.new_files}:
            either = (self.old_files.get(path), self.new_files.get(path))
            assert found.get(path) in either or path.endswith(".nodetune-part"), path

    def cut(self, moment: Moment, how: Callable[[subprocess.Popen], None]) -> str:
        """Begin an apply, wait for the `moment`, end it with `how`. Returns the run."""
        process, run = self.site.begin("apply", *selected(SEVERAL))
        moment(process, run)
        how(process)
        # what the dead run had started on the machine ends by itself, and the next run waits for it
        until("no call of the dead run works", lambda: not self.site.says("pgrep -x python3"), SECONDS)
        self.assert_files_are_whole()
        return run

    def go_on(self, dead: str) -> None:
        """The next run says what the `dead` one did, and continues to the end; then both are undone."""
        did = self.site.says(f"cat {JOURNAL.format(run=dead)} 2>/dev/null")
        open_ended = bool(did) and '{"ended"' not in did
        nothing_left = self.site.values() == self.new_values and self.site.files() == self.new_files
        answer = self.site.apply(SEVERAL)
        assert answer.code == 0, answer
        assert set(answer.outcomes.values()) <= {"fixed"}, answer
        if not nothing_left:
            told = [each for each in answer.data["interrupted"] if each["run"] == dead]
            assert bool(told) == open_ended, answer
        # with nothing left to do no Ansible runs, and the lock of the dead run stays until it is taken over or stale
        self.assert_is(self.new_files, self.new_values, LOCK if nothing_left else "")
        self.take_back(*([answer.run] if answer.data["run"] else []), dead)


def after(seconds: float) -> Moment:
    """A moment: so long after the run was recorded, or when the run has ended."""

    def wait(process: subprocess.Popen, run: str) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)

    return wait


def once(site: Site, holds: str) -> Moment:
    """A moment: as soon as a shell condition holds on the machine, where {run} stands for the run."""

    def wait(process: subprocess.Popen, run: str) -> None:
        loop = f"until {holds.replace('{run}', run)}; do sleep 0.02; done"
        site.machine.ssh(f"timeout {SECONDS} sh -c {shlex.quote(loop)}", timeout=SECONDS + 60)
        assert process.poll() is None, ended(process)

    return wait


def at_change(site: Site, number: int) -> Moment:
    """A moment: as soon as the run has written down, on the machine, that it makes its change of this number."""
    return once(site, f"""[ "$(cat {JOURNAL} 2>/dev/null | grep -c '"before":')" -ge {number} ]""")
