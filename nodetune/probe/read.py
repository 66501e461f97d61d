"""Bounded readers that answer in facts: a value, absent, or unread with its reason. Never a guess, never a default."""

import errno
import os
import re
import stat
import subprocess

ROOT = ""
"""Prefixed to every path that is read: tests plant a fault in a tree of their own."""

LONGEST = 1 << 20
TOOL_PATH = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin"
TOOL_SECONDS = 4
PATIENCE = 1.0
"""Times every deadline: more than 1 where the whole probe was given more time than it usually has."""


def value(data):
    return {"value": data}


def absent(reason="not present on this host"):
    return {"absent": reason}


def unread(reason):
    return {"unread": reason}


def each(facts):
    return {"each": facts}


def each_value(values):
    """A fact per subject from plain values."""
    return each({subject: value(data) for subject, data in values.items()})


def why(problem):
    """What an OSError means to a reader of the report, with what would help."""
    number = getattr(problem, "errno", None)
    if number in (errno.EACCES, errno.EPERM):
        return "permission denied: needs root (--become)"
    return (problem.strerror or str(problem)).lower()


def text(path, longest=LONGEST):
    """The content of a file without blanks at its end: `raw` for people. Raises OSError."""
    return raw(path, longest).rstrip()


def raw(path, longest=LONGEST):
    """The content of a file to the letter. Raises OSError. Never waits on a pipe or a device, never reads past `longest`."""
    handle = os.open(ROOT + path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        parts = []
        left = longest
        while left > 0:
            part = os.read(handle, min(left, 65536))
            if not part:
                break
            parts.append(part)
            left -= len(part)
    finally:
        os.close(handle)
    return b"".join(parts).decode("utf-8", "backslashreplace")


def file_fact(path, parse=None):
    """The fact in one file. `parse` turns its text into a value; what it cannot parse is unread."""
    try:
        content = text(path)
    except (FileNotFoundError, NotADirectoryError):
        return absent()
    except OSError as problem:
        return unread("{}: {}".format(path, why(problem)))
    try:
        return value(parse(content) if parse else content)
    except (ValueError, IndexError, KeyError):
        return unread("{}: unexpected content {!r}".format(path, content[:60]))


def text_or(path, default=""):
    """The file's text, or `default` where there is none or it cannot be read: only for what merely enriches a fact."""
    try:
        return text(path)
    except OSError:
        return default


def names_in(path):
    """The sorted names in a folder; none where it does not exist. Raises OSError where it cannot be read."""
    try:
        return sorted(os.listdir(ROOT + path))
    except (FileNotFoundError, NotADirectoryError):
        return []


def exists(path):
    """Whether the path is there (a broken link is not)."""
    return os.path.exists(ROOT + path)


def real(path):
    """The path with all links resolved, as the host sees it."""
    found = os.path.realpath(ROOT + path)
    return found[len(os.path.realpath(ROOT)) :] if ROOT else found


def link_name(path):
    """The last part of what a link points to (a driver, a device, a block's bus address); None if it is no link."""
    try:
        return os.path.basename(os.readlink(ROOT + path))
    except OSError:
        return None


def number_or_text(content):
    """An int, a list of ints (three TCP buffer sizes), or the text."""
    parts = content.split()
    if parts and all(re.match(r"-?\d+$", part) for part in parts):
        numbers = [int(part) for part in parts]
        return numbers[0] if len(numbers) == 1 else numbers
    return content


def chosen(content):
    """The bracketed word of a sysfs choice: `always [madvise] never` → madvise; the text itself without brackets."""
    found = re.search(r"\[([^\]]+)\]", content)
    return found.group(1) if found else content


def cpu_list(content):
    """`0-3,8` → [0, 1, 2, 3, 8]; an empty text is an empty list. Raises ValueError."""
    cpus = []
    for part in content.replace("\n", ",").split(","):
        if part.strip():
            first, _, last = part.strip().partition("-")
            cpus.extend(range(int(first), int(last or first) + 1))
    return cpus


def fold_cpus(cpus):
    """[0, 1, 2, 5] → "0-2,5"."""
    runs = []
    for cpu in sorted(cpus):
        if runs and runs[-1][1] == cpu - 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(a) if a == b else "{}-{}".format(a, b) for a, b in runs)


def find_tool(name):
    """The full path of a command, or None. Looks in the system's folders whatever PATH says."""
    for folder in TOOL_PATH.split(":"):
        path = os.path.join(folder, name)
        if os.access(ROOT + path, os.X_OK):
            return path
    return None


def run(command, seconds=TOOL_SECONDS):
    """Run a command (full path first) and return its output. `seconds` are times PATIENCE.

    Raises OSError when it cannot run, fails, or takes too long; the text says which.
    """
    environment = {"PATH": TOOL_PATH, "LC_ALL": "C", "HOME": "/"}
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        close_fds=True,
    )
    tool = os.path.basename(command[0])
    try:
        out, err = process.communicate(timeout=seconds * PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        raise OSError(errno.ETIMEDOUT, "{} did not answer within {:g} s".format(tool, seconds * PATIENCE))
    if process.returncode:
        last = err.decode("utf-8", "backslashreplace").strip().splitlines()[-1:] or ["no message"]
        raise OSError(errno.EIO, "{} failed ({}): {}".format(tool, process.returncode, last[0][:200]))
    return out[:LONGEST].decode("utf-8", "backslashreplace")


def first_that_wins(folders, suffix):
    """The files that a systemd-style tool reads, in the order in which it applies them.

    `folders` in order of priority: of files with the same name only the one in the first folder counts (a link to
    /dev/null hides the others); then all are sorted by name, whatever the folder.
    """
    winners = {}
    for folder in folders:
        try:
            names = names_in(folder)
        except OSError:
            continue
        for name in names:
            if name.endswith(suffix):
                winners.setdefault(name, os.path.join(folder, name))
    return [winners[name] for name in sorted(winners) if real(winners[name]) != "/dev/null"]
