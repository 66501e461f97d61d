"""One run at a time on a host. /run is empty after a boot, so a lock never survives a reboot.

Two files: `lock` has the run that owns this host across its calls; `work` is locked (flock) during a call,
so that no other call runs along with one whose controller died.
"""

import fcntl
import json
import os
import time

from . import atomic_file
from .journal import boot_id
from .problem import StopError, why

FOLDER = "/run/nodetune"
STALE_SECONDS = 15 * 60
"""A run without a call for this many seconds has died: another run may take over."""

LATEST = 1 << 35
"""No lock is of a time later than this, in the year 3058: Python's clock ends at some time."""

WORK_SECONDS = 20
"""Seconds that a call waits for one that still runs."""


class Lock:
    """One run's view of the lock. A context manager: inside, this is the only call that works on the host."""

    def __init__(self, run, folder=""):
        self.run, self.folder = run, folder or FOLDER
        self.path = os.path.join(self.folder, "lock")
        self._work = None

    def __enter__(self):
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            self._work = os.open(os.path.join(self.folder, "work"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StopError(f"{self.folder} cannot be used for the lock: {why(error)}") from None
        deadline = time.monotonic() + WORK_SECONDS
        while not self._sole():
            if time.monotonic() > deadline:
                os.close(self._work)
                raise StopError(
                    f"run {self.holder().get('run', '(unknown)')} is running on this host now: try again later"
                )
            time.sleep(0.1)
        return self

    def __exit__(self, *_):
        os.close(self._work)

    def _sole(self):
        try:
            fcntl.flock(self._work, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def holder(self):
        """Return {"run", "controller", "since", "heard", "boot"} of the run that holds the lock, or {}."""
        try:
            with open(self.path) as opened:
                held = json.load(opened)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            raise StopError(f"{self.path} cannot be read ({error}): if no other run is active, remove it") from None
        if not _is_sound(held):
            raise StopError(f"{self.path} is damaged: if no other run is active, remove it")
        return held if held.get("boot") == boot_id() else {}

    def take(self, controller, take_over=""):
        """Take the lock, or raise StopError with the run that holds it.

        The runs of `take_over` (names separated by blanks) are known to have ended.
        """
        held = self.holder()
        age = self._age(held) if held else 0.0
        if held and held["run"] not in (self.run, *take_over.split()) and age < STALE_SECONDS:
            raise StopError(
                f"run {held['run']} of {held['controller']} has been running on this host since "
                f"{_clock(held['since'])} (last active {age:.0f} s ago): wait for it; if it has died, its lock "
                f"expires after {STALE_SECONDS // 60} minutes"
            )
        self._write({"run": self.run, "controller": controller, "since": time.time(), "boot": boot_id()})

    def keep(self):
        """Record that the run is alive. Raise StopError if the run does not own the host (any more) or was stopped."""
        held = self.holder()
        if not held:
            raise StopError(
                f"run {self.run} does not own this host: the host was rebooted since, or the run never began"
            )
        if held["run"] != self.run:
            raise StopError(f"run {held['run']} of {held['controller']} has taken over this host since")
        if held.get("stopped"):
            raise StopError(f"not tried, after an earlier step: {held['stopped']}")
        self._write(held)

    def mark(self, **marks):
        """Stop all later calls of this run here (`stopped`: why), or all guarded changes in them (`refused`)."""
        held = self.holder()
        if held.get("run") == self.run:
            self._write(dict(held, **marks))

    def release(self):
        if self.holder().get("run") == self.run:
            os.unlink(self.path)

    def _age(self, held):
        """Return the seconds since the last call of the run. The first version used the date of the file."""
        if "heard" in held:
            return since_boot() - held["heard"]
        return abs(time.time() - os.stat(self.path).st_mtime)

    def _write(self, held):
        try:
            atomic_file.replace(self.path, json.dumps(dict(held, heard=since_boot())).encode(), 0o600)
        except OSError as error:
            raise StopError(f"{self.path} cannot be written: {why(error)}") from None


def _is_sound(held):
    if not isinstance(held, dict):
        return False
    texts = [held.get("run"), held.get("controller"), held.get("boot", "")]
    times = [held.get("since"), held.get("heard", 0)]
    return all(isinstance(text, str) for text in texts) and all(
        isinstance(seconds, (int, float)) and 0 <= seconds < LATEST for seconds in times
    )


def since_boot():
    """Return the seconds since boot, a clock that nobody can set: a lock belongs to this boot or is invalid."""
    return time.monotonic()


def _clock(seconds):
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))
