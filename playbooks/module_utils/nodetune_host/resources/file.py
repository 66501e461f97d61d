"""A whole file: {"path", "content": text, or null for none, "mode": "0644", "or": [text, …]}.

`or` has the texts that later groups of the same plan write: a file with such a text is left unchanged. Otherwise a plan
that runs again would remove the later text and write it again.

State: {"content": base64 or null, "mode": "0644", "uid", "gid", "attributes": {name: base64} of a file that has some:
the SELinux label, ACLs, which a file that comes back gets again}; without a file, "folder" is the topmost
missing folder, so that a rollback leaves no empty folders.
"""

import base64
import errno
import os
import stat

from .. import atomic_file
from ..problem import ChangeError, why

MAX_BYTES = 4 << 20
"""Limit in bytes. A longer file is not a configuration file, and the journal would have to contain all of it."""

SHOWN = 64 << 10
"""Largest file in bytes that a diff shows; for a longer one it shows the size."""

ABSENT = {"content": None, "mode": None, "uid": None, "gid": None}


def place(change):
    """Return the file itself: a link is written through, not replaced by a file."""
    return os.path.realpath(change["path"])


def label(change):
    target = place(change)
    return change["path"] if target == os.path.abspath(change["path"]) else f"{change['path']} (a link to {target})"


def read(change):
    path = _target(change)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return dict(ABSENT, folder=atomic_file.missing_folder(path))
    except OSError as error:
        raise ChangeError(f"{path} cannot be read: {why(error)}") from None
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            raise ChangeError(f"{label(change)} is not a regular file: left alone")
        content, attributes = _content(handle), atomic_file.attributes_of(handle)
    finally:
        os.close(handle)
    if len(content) > MAX_BYTES:
        raise ChangeError(
            f"{path} is larger than {MAX_BYTES >> 20} MiB, so probably not a configuration file: left alone"
        )
    found = state(content, about.st_mode & 0o7777, about.st_uid, about.st_gid)
    return dict(found, attributes={name: _text(value) for name, value in attributes.items()}) if attributes else found


def wanted(change, now):
    if change["content"] is None:
        return now if now["content"] is None else dict(ABSENT, folder=None)
    already = content_of(now).decode("utf-8", "replace")
    content = already if already in change.get("or", ()) else change["content"]
    return with_content(content.encode(), now, change.get("mode"))


def with_content(content, now, mode=None):
    """Return the state of a file with these bytes: mode and owner are kept; a new file belongs to root."""
    if now["content"] is None:
        return state(content, int(mode or "0644", 8), os.geteuid(), os.getegid())
    return state(content, int(mode or now["mode"], 8), now["uid"], now["gid"])


def edited(now, edit):
    """Return the state after `edit` (text -> text); bytes that are not UTF-8 are kept, as is an unchanged file."""
    before = content_of(now).decode("utf-8", "surrogateescape")
    after = edit(before)
    return now if after == before else with_content(after.encode("utf-8", "surrogateescape"), now)


def state(content, mode, uid, gid):
    return {"content": _text(content), "mode": f"{mode:04o}", "uid": uid, "gid": gid}


def _text(content):
    return base64.b64encode(content).decode("ascii")


def content_of(state):
    """Return the bytes of a file in that state; empty if there is no file."""
    return base64.b64decode(state["content"] or "")


def same(one, other):
    """Compare without the missing folders and the attributes, which matter only for bringing it back."""
    return all(one[key] == other[key] for key in ABSENT)


def show(change, state):
    if state["content"] is None:
        return ""
    content = content_of(state)
    if len(content) > SHOWN or b"\0" in content:
        return f"({len(content)} bytes, mode {state['mode']})\n"
    return content.decode("utf-8", "backslashreplace")


def about(state):
    """Return mode and owner for the head of a diff, so that a change of them alone is visible."""
    return "no file" if state["content"] is None else f"mode {state['mode']}, owner {state['uid']}:{state['gid']}"


def put(change, state):
    path = _target(change)
    try:
        if state["content"] is None:
            atomic_file.remove(path, state.get("folder"))
        else:
            attributes = {name: base64.b64decode(value) for name, value in state.get("attributes", {}).items()}
            mode = int(state["mode"], 8)
            atomic_file.replace(path, content_of(state), mode, state["uid"], state["gid"], attributes)
    except OSError as error:
        verb = "removed" if state["content"] is None else "written"
        raise ChangeError(f"{path} cannot be {verb}: {_why(error)}{_needed(error, path, state)}") from None


def _target(change):
    if not change["path"].startswith("/"):
        raise ChangeError(f"{change['path']} is not an absolute path")
    return place(change)


def _content(handle):
    parts, size = [], 0
    while size <= MAX_BYTES:
        part = os.read(handle, MAX_BYTES + 1 - size)
        if not part:
            break
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def _why(error):
    hints = {
        errno.EPERM: " (is it immutable? lsattr shows it)",
        errno.EBUSY: " (is it a mount point?)",
    }
    return why(error) + hints.get(error.errno, "")


def _needed(error, path, state):
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return ""
    folder = os.path.dirname(path)
    return f" (it needs {len(content_of(state))} bytes in {folder}: free some space, then run this again)"
