"""The guard's files on the node, under /run: small, bounded in number, each replaced as a whole. Imports next to nothing."""

from __future__ import annotations

import os
import time

MAX_RECORDS = 100
"""Files that one folder keeps: the newest."""

LOCK = "lock"
"""Held by the prolog that reads; each reader of the host locks one byte of it (onhost/one_reader.py)."""

FAILED, PASSES, SNAPSHOTS = "failed", "pass", "snap"
FOLDERS = ("", FAILED, PASSES, SNAPSHOTS)
LAST = "last.json"
COUNT = "blind"
"""Counts the inconclusive runs since boot. It keeps its name: entries of every version write it."""

UNCOUNTED = "uncounted"
"""A folder with an empty file for each of these runs that the entry had no room to count."""

PREFIX = "nodetune: "
"""Begins the reasons that Slurm shows."""

HELD = "held.json"
"""The newest failure record once more, by a name that can be asked for from elsewhere."""

WRITING = ".writing-"
ABANDONED_SECONDS = 60.0


def trusted(seen: os.stat_result) -> bool:
    """Return whether only root (or who runs this) can have written it."""
    return seen.st_uid in (0, os.geteuid()) and not seen.st_mode & 0o022


def prepare(run: str) -> None:
    """Make the folders. Raise OSError, or PermissionError where others could write there."""
    for name in FOLDERS:
        path = os.path.join(run, name)
        os.makedirs(path, mode=0o755, exist_ok=True)
        if not trusted(os.lstat(path)):
            raise PermissionError(13, "other users can write there", path)
    try:
        _count(run)
    except (OSError, ValueError):
        pass  # a later run may have the room


def _count(run: str) -> None:
    """Add the runs that the entry could not count. Raise OSError or ValueError."""
    folder = os.path.join(run, UNCOUNTED)
    marks = os.listdir(folder) if os.path.isdir(folder) else []
    if not marks:
        return
    count(run, len(marks))
    for name in marks:
        os.unlink(os.path.join(folder, name))


def count(run: str, more: int) -> None:
    """Add to the number of inconclusive runs. Raise OSError or ValueError."""
    path = os.path.join(run, COUNT)
    times, _, rest = read(path).partition("\n")[0].partition(" ") if os.path.exists(path) else ("0", "", "")
    write(path, f"{int(times or 0) + more} {rest or 'times since boot'}\n")


def keep(run: str, job: str, record: str) -> None:
    """Put a failure on record: what the entry looks for. Raise OSError."""
    write(os.path.join(run, FAILED, f"{job}.json"), record + "\n")
    try:
        write(os.path.join(run, HELD), record + "\n")
    except OSError:
        pass  # the failure is on record; only `guard status` has to wait for its reason


def write(path: str, text: str, *, sync: bool = False) -> None:
    """Replace a file as a whole; with `sync` also where power fails. Raise OSError, and then leaves no part of it."""
    folder, name = os.path.split(path)
    new = os.path.join(folder, f"{WRITING}{name}-{os.getpid()}")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        try:
            data = text.encode("utf-8", "backslashreplace")
            while data:
                data = data[os.write(handle, data) :]
            if sync:
                os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(new, path)
    except OSError:
        os.unlink(new)
        raise


def read(path: str, longest: int = 1 << 20) -> str:
    """Read a small file. Raise OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(handle, longest).decode("utf-8", "backslashreplace")
    finally:
        os.close(handle)


def heartbeat(run: str, verdict: str, job: str, reason: str = "") -> None:
    """Write a heartbeat for monitoring: Unix seconds, job and verdict of the last run, and what failed."""
    failed = f": {reason.removeprefix(PREFIX)}" if reason else ""
    try:
        write(os.path.join(run, "heartbeat"), f"{int(time.time())} {job or '-'} {verdict}{failed}\n")
    except OSError:
        pass  # a missing heartbeat is what monitoring looks for


def boot_id() -> str:
    """Return the ID of this boot. Raise OSError."""
    return read("/proc/sys/kernel/random/boot_id").strip()


def prune(folder: str, most: int = MAX_RECORDS) -> None:
    """Remove the oldest files of a folder, and those that a killed run was writing. Of before a clock was set back is old."""
    now = time.time()
    with os.scandir(folder) as entries:
        files = [(_age(entry, now), entry.path, entry.name) for entry in entries]
    whole = sorted((each for each in files if not each[2].startswith(WRITING)), reverse=True)
    partly = [each for each in files if each[2].startswith(WRITING) and each[0] > ABANDONED_SECONDS]
    for _, path, _ in [*whole[: max(0, len(whole) - most)], *partly]:
        try:
            os.unlink(path)
        except OSError:
            continue  # another run was faster


def _age(entry: os.DirEntry[str], now: float) -> float:
    """Return the age in seconds; infinite for a date well in the future."""
    age = now - entry.stat(follow_symlinks=False).st_mtime
    return age if age > -ABANDONED_SECONDS else float("inf")


def tidy(run: str) -> None:
    """Keep every folder within its bounds."""
    for name in FOLDERS:
        prune(os.path.join(run, name))


def snapshot(run: str, job: str) -> None:
    """Give the job the last reading as its own, for the epilog to compare with."""
    if job:
        path = os.path.join(run, SNAPSHOTS, f"{job}.json")
        try:
            if os.path.exists(path):  # a requeued job
                os.unlink(path)
            os.link(os.path.join(run, SNAPSHOTS, LAST), path)
        except OSError:
            pass  # without a reading, or without room, the epilog has nothing to compare with and says so
