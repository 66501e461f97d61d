"""What the next boot will set, and which file decides.

`persisted.sysctl.NAME` by systemd-sysctl's order, `persisted.tmpfiles.PATH` by systemd-tmpfiles':
{"value", "file", "line"} of the line that wins; absent where no file sets it.
"""

import fnmatch

from . import read

SYSCTL_FOLDERS = ("/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d")
TMPFILES_FOLDERS = ("/etc/tmpfiles.d", "/run/tmpfiles.d", "/usr/local/lib/tmpfiles.d", "/usr/lib/tmpfiles.d")


def collect(names, step):
    sysctls = [name.partition(".")[2] for name in names if name.startswith("sysctl.")]
    paths = [name.partition(".")[2] for name in names if name.startswith("tmpfiles.")]
    step("sysctl.d")
    lines = _lines(SYSCTL_FOLDERS)
    for name in sysctls:
        yield "sysctl." + name, sysctl_winner(name, lines)
    step("tmpfiles.d")
    lines = _lines(TMPFILES_FOLDERS)
    for path in paths:
        yield "tmpfiles." + path, tmpfiles_winner(path, lines)


def _lines(folders):
    """(file, line number, text) of every setting, in the order in which they are applied; or why not."""
    found = []
    for path in read.first_that_wins(folders, ".conf"):
        try:
            content = read.text(path)
        except FileNotFoundError:
            continue
        except OSError as problem:
            return read.unread("{}: {}".format(path, read.why(problem)))
        for number, line in enumerate(content.splitlines(), 1):
            if line.strip() and line.strip()[0] not in "#;":
                found.append((path, number, line.strip()))
    return found


def sysctl_winner(name, lines):
    """The last line that sets `name` wins; a name given in full wins over a pattern (systemd 250 and newer)."""
    if isinstance(lines, dict):
        return lines
    best = None
    for path, number, line in lines:
        key, equals, setting = line.partition("=")
        key = key.strip().lstrip("-").strip()
        if not equals:
            continue
        exact = _dotted(key) == name
        if exact or (_is_pattern(key) and fnmatch.fnmatchcase(name, _dotted(key)) and not (best and best[0])):
            best = (exact, {"value": read.number_or_text(setting.strip()), "file": path, "line": number})
    return read.value(best[1]) if best else read.absent("no sysctl.d file sets it")


def _is_pattern(key):
    return any(sign in key for sign in "*?[")


def _dotted(key):
    """A key whose first separator is a slash is a path: its dots are part of names."""
    for sign in key:
        if sign == ".":
            return key
        if sign == "/":
            return key.replace(".", "\0").replace("/", ".").replace("\0", "/")
    return key


def tmpfiles_winner(path, lines):
    """The last `w` line for the path (later lines of that kind overwrite what earlier ones wrote)."""
    if isinstance(lines, dict):
        return lines
    best = None
    for source, number, line in lines:
        fields = line.split(None, 6)
        if len(fields) == 7 and fields[0][0] == "w" and (fields[1] == path or fnmatch.fnmatchcase(path, fields[1])):
            best = {"value": read.number_or_text(fields[6]), "file": source, "line": number}
    return read.value(best) if best else read.absent("no tmpfiles.d file sets it")
