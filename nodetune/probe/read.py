"""Bounded readers that return facts: a value, absent, or unread with its reason. Never a guess or a default."""

import errno
import os
import re
import stat

from nodetune.onhost import command, host_root

ROOT = ""
"""Prefix of every path: tests use it to plant faults in their own tree."""

MAX_BYTES = 1 << 20
TOOL_SECONDS = 4
PATIENCE = 1.0
"""Factor for every deadline: more than 1 if the probe has more time than usual."""


def value(data):
    return {"value": data}


def absent(reason="not present on this host"):
    return {"absent": reason}


def unread(reason):
    return {"unread": reason}


def each(facts):
    return {"each": facts}


def each_value(values):
    """Make a fact per subject from plain values."""
    return each({subject: value(data) for subject, data in values.items()})


def why(problem):
    """Describe an OSError for reports, with a hint."""
    number = getattr(problem, "errno", None)
    if number in (errno.EACCES, errno.EPERM):
        return lacks("permission denied")
    return (problem.strerror or str(problem)).lower()


def lacks(refused):
    """Describe what was refused, with the privilege that is missing."""
    return "{}: {}".format(refused, host_root.missing_privilege())


def text(path, longest=MAX_BYTES):
    """Return the content of a file without trailing blanks. Raise OSError."""
    return raw(path, longest).rstrip()


def raw(path, longest=MAX_BYTES):
    """Return the exact content of a file as text. Raise OSError."""
    return raw_bytes(path, longest).decode("utf-8", "backslashreplace")


def raw_bytes(path, longest=MAX_BYTES):
    """Return the exact content of a file. Raise OSError.

    Never wait on a pipe or a device, never read past `longest`.
    """
    try:
        return _bounded(path, longest)
    except OSError as problem:
        raise OSError(problem.errno, problem.strerror, path)  # a read that fails names no file


def _bounded(path, longest):
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
    return b"".join(parts)


def file_fact(path, parse=None):
    """Return the fact in one file. `parse` turns its text into a value; text that it cannot parse is unread."""
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


def tried(reader, *given):
    """Return the fact that `reader` reads, or unread if it raises OSError."""
    try:
        return reader(*given)
    except OSError as problem:
        return unread("{}: {}".format(problem.filename, why(problem)) if problem.filename else why(problem))


def text_or(path, default=""):
    """Return the file's text, or `default` if it cannot be read. Use it only for details of a fact."""
    try:
        return text(path)
    except OSError:
        return default


def names_in(path):
    """Return the sorted names in a folder; empty if it does not exist. Raise OSError if it cannot be read."""
    try:
        return sorted(os.listdir(ROOT + path))
    except (FileNotFoundError, NotADirectoryError):
        return []


def names_or_empty(path):
    """Return the sorted names in a folder; empty also if it cannot be read."""
    try:
        return names_in(path)
    except OSError:
        return []


def exists(path):
    """Return whether the path exists (a broken link does not)."""
    return os.path.exists(ROOT + path)


def real(path):
    """Resolve all links in a path on the host."""
    found = os.path.realpath(ROOT + path)
    return found[len(os.path.realpath(ROOT)) :] if ROOT else found


def link_name(path):
    """Return the last part of a link's target (a driver, a device, a bus address), or None if it is not a link."""
    try:
        return os.path.basename(os.readlink(ROOT + path))
    except OSError:
        return None


def number_or_text(content):
    """Return an int, a list of ints (three TCP buffer sizes), or the text."""
    parts = content.split()
    if parts and all(re.match(r"-?\d+$", part) for part in parts):
        numbers = [int(part) for part in parts]
        return numbers[0] if len(numbers) == 1 else numbers
    return content


def chosen(content):
    """Return the bracketed word of a sysfs choice: `always [madvise] never` → madvise; or the text without brackets."""
    found = re.search(r"\[([^\]]+)\]", content)
    return found.group(1) if found else content


def find_tool(name):
    """Return the full path of a command in the system's folders, whatever PATH says, or None."""
    return command.find(name, ROOT)


def run(argv, seconds=TOOL_SECONDS, **more):
    """Run a command (full path first) and return its output. `seconds` are times PATIENCE.

    Raise OSError if it cannot run, fails, prints too much or takes too long; the text says which.
    """
    return command.run(argv, seconds * PATIENCE, tied=True, **more)


def lines(argv, seconds=TOOL_SECONDS):
    """Yield the lines that a command prints until its time (`seconds` times PATIENCE) is over. Raise OSError."""
    return command.lines(argv, seconds * PATIENCE, tied=True)


def config_folders(name):
    """Return the folders of one kind of configuration, such as modprobe.d, in the order of priority."""
    return tuple(root + name for root in ("/etc/", "/run/", "/usr/local/lib/", "/usr/lib/", "/lib/"))


UNIT_FOLDERS = config_folders("systemd/system")


def with_drop_ins(folders, *names):
    """Return the first file with one of these names, if any, and its drop-ins in the order in which they apply."""
    paths = [os.path.join(folder, name) for folder in folders for name in names]
    main = [path for path in paths if exists(path)][:1]
    return main + first_that_wins([path + ".d" for path in paths], ".conf")


def contents_that_win(folders):
    """Return [(path, text)] of the .conf files in such folders, or the error."""
    found = []
    for path in first_that_wins(folders, ".conf"):
        try:
            found.append((path, text(path)))
        except FileNotFoundError:
            continue
        except OSError as problem:
            return unread("{}: {}".format(path, why(problem)))
    return found


def first_that_wins(folders, suffix):
    """Return the files that a systemd-style tool reads, in the order in which it applies them.

    `folders` are in order of priority: of files with the same name only the one in the first folder counts (a link to
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


def numbered_lines(path):
    """Return (number, text) of each line; empty if the file does not exist. Raise OSError if it cannot be read."""
    try:
        return [(number, line.strip()) for number, line in enumerate(text(path).splitlines(), 1)]
    except (FileNotFoundError, NotADirectoryError):
        return []
