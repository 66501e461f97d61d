"""A kernel file (/proc/sys, /sys): {"path": may be a glob, "value"}. State: {path: text} of all matches.

Texts are compared without regard to blanks, and for a choice (`always [madvise] never`) only the chosen word counts.
"""

import errno
import glob
import os
import re

from ..problem import ChangeError, why

MAX_BYTES = 64 << 10
TWINS = (
    ("/vm/dirty_bytes", "/vm/dirty_ratio"),
    ("/vm/dirty_background_bytes", "/vm/dirty_background_ratio"),
    ("/vm/overcommit_kbytes", "/vm/overcommit_ratio"),
)
"""Two names of one setting: writing one sets the other to 0. The state has both, or it could not be restored."""

RAISED = "/vm/min_free_kbytes"
"""The kernel raises it whenever it turns transparent huge pages on, also at boot."""

PARAMETERS = "/sys/module/"
BOOLEANS = {"1": "Y", "0": "N", "Y": "1", "N": "0"}
"""A module's parameter is written 1 and read Y."""


def label(change):
    return change["path"]


def read(change):
    """Read all matching files. Raise ChangeError if there are none or one cannot be read."""
    paths = sorted(glob.glob(change["path"]))
    if not paths:
        raise ChangeError(f"{change['path']} is not there")
    return {path: text_of(path) for found in paths for path in _with_twin(found)}


def wanted(change, now):
    value = _normal(str(change["value"]))
    after = dict(now)
    for path in set(glob.glob(change["path"])) & set(now):
        after[path] = now[path] if BOOLEANS.get(now[path]) == value and path.startswith(PARAMETERS) else value
        twins = [twin for twin in _with_twin(path) if twin != path]
        after.update({twin: "0" for twin in twins if after[path] != now[path]})
    return after


def same(one, other):
    """Compare the files that both have: a removed device has nothing to restore."""
    return all(one[path] == other[path] for path in set(one) & set(other))


def moved_by_kernel(left, now):
    """Return whether the kernel alone may have changed the state to `now`."""
    differing = [path for path in set(left) & set(now) if left[path] != now[path]]
    return all(path.endswith(RAISED) and int(now[path]) > int(left[path]) for path in differing)


def show(change, state):
    return "".join(f"{path} = {text}\n" for path, text in sorted(state.items()))


def put(change, state):
    """Write everything that differs from `state`. Raise ChangeError with the first file that failed."""
    refused = []
    for path in sorted(state):
        if state[path] == "0" and any(state.get(twin, "0") != "0" for twin in _with_twin(path)):
            continue
        try:
            if text_of(path) != state[path]:
                _write(path, state[path])
        except ChangeError as problem:
            refused.append(str(problem))
    if refused:
        raise ChangeError(refused[0] + (f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""))


def _with_twin(path):
    for pair in TWINS:
        for name in pair:
            if path.endswith(name):
                stem = path[: -len(name)]
                return [stem + one for one in pair if os.path.exists(stem + one)]
    return [path]


def text_of(path):
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as opened:
            data = opened.read(MAX_BYTES)
    except FileNotFoundError:
        raise ChangeError(f"{path} is not there") from None
    except OSError as error:
        raise ChangeError(f"{path} cannot be read: {why(error)}") from None
    return _normal(data.decode("utf-8", "backslashreplace"))


def _normal(text):
    words = text.split()
    chosen = [word for word in words if re.match(r"\[.+\]$", word)]
    return chosen[0][1:-1] if len(chosen) == 1 else " ".join(words)


def _write(path, text):
    try:
        handle = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
        try:
            os.write(handle, text.encode() + b"\n")
        finally:
            os.close(handle)
    except OSError as error:
        raise ChangeError(f"{path}: {_why(error, text)}") from None


def _why(error, text):
    if error.errno in (errno.EINVAL, errno.ERANGE, errno.EDOM, errno.EOVERFLOW):
        return f"the kernel rejected {text!r} ({why(error)})"
    if error.errno in (errno.EPERM, errno.EACCES, errno.EROFS):
        return f"cannot be written ({why(error)}): a container, or a locked-down kernel?"
    return f"{text!r} could not be written: {why(error)}"
