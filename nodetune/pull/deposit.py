"""The collector's first half: this process waits for the probe, which goes on in its child, and leaves what it said in a folder.

It travels as text before the probe's script (see program.py) and runs on hosts: standard library and syntax of Python
3.6, and nothing of nodetune. The text that calls it says where what is to go.
"""

import fcntl
import json
import os
import pwd
import re
import select
import sys
import time
import zlib
from contextlib import suppress
from pathlib import Path

MOST_BYTES = 64 << 20
SLACK_SECONDS = 30.0
"""What the probe may take beyond its own deadline until it has told everything."""

PLACELESS = re.compile(r"localhost(\..*)?", re.IGNORECASE)


class NotDone(Exception):
    """Why there is no new file: one line."""


def deposit(folder: str, user: str, about: "dict[str, object]", nonce: str, seconds: float, lock: str) -> None:
    """Return in a child, whose standard output is read here; the process itself never does: it ends with 0 or 1.

    `user`: who writes (empty: who runs this); `about`: what the document says of itself; `seconds`: the probe's deadline.
    """
    try:
        _say_who(folder, user, about, nonce, seconds, lock)
    except NotDone as problem:
        _end(str(problem))
    except OSError as problem:
        _end(f"{problem.filename}: {problem.strerror}" if problem.filename else str(problem))


def _end(text: str) -> None:
    os.write(2, f"nodetune: {text}\n".encode("ascii", "backslashreplace"))
    os._exit(1)


def _say_who(folder: str, user: str, about: "dict[str, object]", nonce: str, seconds: float, lock: str) -> None:
    name = _name(os.uname().nodename)
    held = _alone(lock)
    here, there = os.pipe()
    sys.stdout.flush()
    if os.fork() == 0:
        os.close(here)
        os.close(held)  # a reader that is left behind must not hold it for good
        os.dup2(there, 1)
        os.close(there)
        return
    os.close(there)
    document = json.loads(_answer(here, nonce, time.monotonic() + seconds + SLACK_SECONDS).decode("ascii"))
    document["host"] = name
    document["schema"] = "nodetune.facts/1"
    document["about"].update(about)
    if user:
        _become(user)
    _write(folder, name, _text(document).encode("ascii"))
    os._exit(0)


def _text(document: "dict[str, dict[str, object]]") -> str:
    """As the probe writes it, one fact a line: see nodetune/probe/layout.py."""
    facts = document.pop("facts")
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(facts[name])}" for name in sorted(facts))
    return json.dumps(document, indent=1, sort_keys=True)[:-2] + f',\n "facts": {{\n{lines}\n }}\n}}\n'


def _name(node: str) -> str:
    """The host's name, which is that of its file."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", node) or PLACELESS.fullmatch(node):
        raise NotDone(f"the host name {node!r} is no name for a file that is this host's alone: set one")
    return node


def _alone(path: str) -> int:
    """Hold the lock until this process ends, however it ends."""
    held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        process = os.read(held, 20).decode("ascii", "replace").strip()
        raise NotDone(f"an earlier run (process {process}) has not ended: not starting another") from None
    os.ftruncate(held, 0)
    os.write(held, str(os.getpid()).encode("ascii"))
    return held


def _answer(pipe: int, nonce: str, deadline: float) -> bytes:
    """What the probe said: JSON. See nodetune/probe/emit.py for its frame."""
    said = bytearray()
    while True:
        if not select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise NotDone("the probe did not end in time")
        some = os.read(pipe, 1 << 16)
        if not some:
            break
        said += some
        if len(said) > MOST_BYTES:
            raise NotDone("the probe said more than a probe does")
    head = re.search(b"<<nodetune " + nonce.encode("ascii") + rb" (\d+) ([0-9a-f]{8})>>\n", said)
    packed = bytes(said[head.end() : head.end() + int(head.group(1))]) if head else b""
    if not head or len(packed) != int(head.group(1)) or zlib.crc32(packed) != int(head.group(2), 16):
        raise NotDone("the probe ended without an answer")
    return zlib.decompress(packed)


def _become(user: str) -> None:
    """Be somebody else for good: where a file server takes root for nobody, an ordinary user writes."""
    if os.getuid():
        raise NotDone(f"only root can write as {user}")
    try:
        known = pwd.getpwnam(user)
    except KeyError:
        raise NotDone(f"there is no user {user} here") from None
    os.initgroups(user, known.pw_gid)
    os.setgid(known.pw_gid)
    os.setuid(known.pw_uid)


def _write(folder: str, name: str, content: bytes) -> None:
    """The whole content under the host's name, or what was there before. No link is followed below the folder."""
    where = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    partial = f".{name}.{boot}.partial"  # two hosts that go by one name do not share this one
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        _remove(partial, where)  # left by a run that was killed
        _put(os.open(partial, flags, 0o640, dir_fd=where), content)
        os.rename(partial, name + ".json", src_dir_fd=where, dst_dir_fd=where)
    except OSError as problem:
        with suppress(OSError):
            _remove(partial, where)
        raise NotDone(f"{folder}/{name}.json is as it was: {problem.strerror}") from None
    with suppress(OSError):  # not every file system can; the file itself is there
        os.fsync(where)


def _put(there: int, content: bytes) -> None:
    """Write and close: a file server may say only at the close that there was no room."""
    with suppress(OSError):  # not every file system keeps modes
        os.fchmod(there, 0o640)
    try:
        while content:
            content = content[os.write(there, content) :]
        os.fsync(there)
    finally:
        os.close(there)


def _remove(name: str, where: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=where)
