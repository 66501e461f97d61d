"""One run at a time on a host. /run is empty after a boot, so a lock never outlives the system that it was taken on.

Two files: `lock` tells which run this host belongs to, over all its calls; `work` is held (flock) while a call works,
so that a call whose controller died is never joined by another.
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
"""A run that has not called for so long has died: somebody else may go on."""

WORK_SECONDS = 20
"""How long a call waits for one that still works."""


class Lock:
    """The lock as one run sees it. A context manager: inside, this call is the only one at work on the host."""

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
                    f"run {self.holder().get('run', '(unknown)')} is at work on this host now: try again later"
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
        except (OSError, ValueError) as error:
            raise StopError(f"{self.path} cannot be read ({error}): if no other run is on, remove it") from None
        return held if held.get("boot") == boot_id() else {}

    def take(self, controller, take_over=""):
        """Take the lock, or raise StopError with the run that holds it.

        The runs of `take_over` (names, with blanks between) are known to be over.
        """
        held = self.holder()
        age = self._age(held) if held else 0.0
        if held and held["run"] not in (self.run, *take_over.split()) and age < STALE_SECONDS:
            raise StopError(
                f"run {held['run']} of {held['controller']} works on this host since {_clock(held['since'])}"
                f" (last heard of {age:.0f} s ago): wait for it; if it has died, this ends by itself"
                f" after {STALE_SECONDS // 60} minutes"
            )
        self._write({"run": self.run, "controller": controller, "since": time.time(), "boot": boot_id()})

    def keep(self):
        """Say that the run is alive. Raise StopError if the host is not this run's (any more), or when it was stopped."""
        held = self.holder()
        if not held:
            raise StopError(
                f"run {self.run} does not hold this host: it was restarted since, or the run was never begun"
            )
        if held["run"] != self.run:
            raise StopError(f"run {held['run']} of {held['controller']} has taken this host over since")
        if held.get("stopped"):
            raise StopError(f"not tried, after an earlier step: {held['stopped']}")
        self._write(held)

    def stop(self, reason):
        """Let no later call of this run do anything here."""
        self._mark(stopped=reason)

    def refuse(self, reason):
        """Let no later call of this run do anything that is guarded."""
        self._mark(refused=reason)

    def _mark(self, **marks):
        held = self.holder()
        if held.get("run") == self.run:
            self._write(dict(held, **marks))

    def release(self):
        if self.holder().get("run") == self.run:
            os.unlink(self.path)

    def _age(self, held):
        """Return the seconds since the run was last heard of. The first edition told it by the date of the file."""
        if "heard" in held:
            return since_boot() - held["heard"]
        return abs(time.time() - os.stat(self.path).st_mtime)

    def _write(self, held):
        try:
            atomic_file.replace(self.path, json.dumps(dict(held, heard=since_boot())).encode(), 0o600)
        except OSError as error:
            raise StopError(f"{self.path} cannot be written: {why(error)}") from None


def since_boot():
    """Return the seconds since the boot, which nobody sets: a lock is of this boot, or none."""
    return time.monotonic()


def _clock(seconds):
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))
