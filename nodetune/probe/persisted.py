"""The settings of the next boot and the files that decide.

`persisted.sysctl.NAME` by systemd-sysctl's order and, if tuned reads the files after it, tuned's;
`persisted.tmpfiles.PATH` by systemd-tmpfiles': {"value", "file", "line"} of the line that wins; absent if no file
sets it; with "at_boot" if that file is older than the boot, which has read it then. What units and scripts of the site
set at boot wins over both. `persisted.gpu.SETTING` is the command of a unit, a script, cron or udev that sets a setting of GPUs
at each boot. `persisted.sysctl_conf` is what /etc/sysctl.conf sets, by name: `sysctl --system` reads it last.
"""

import fnmatch
import os
import re

from nodetune.onhost import sysctl

from . import boot_scripts, read, tuned

SYSCTL_CONF = "/etc/sysctl.conf"
LINE_END = re.compile("\r\n?|\n")  # of systemd; str.splitlines ends lines at form feeds and others too


def collect(names, step):
    sysctls = [name.partition(".")[2] for name in names if name.startswith("sysctl.")]
    paths = [name.partition(".")[2] for name in names if name.startswith("tmpfiles.")]
    step("units and scripts of the boot")
    scripts = boot_scripts.lines() if sysctls or paths else []
    booted = re.search(r"^btime (\d+)", read.text_or("/proc/stat"), re.M)
    step("sysctl.d")
    lines, last = (_lines("sysctl.d"), read.tried(_read_last, scripts)) if sysctls else ([], {})
    for name in sysctls:
        late = boot_scripts.sets_sysctl(name, scripts)
        yield "sysctl." + name, read.value(late) if late else _dated(sysctl_winner(name, lines, last), booted)
    if "sysctl_conf" in names:
        yield "sysctl_conf", read.tried(lambda: read.value(_sysctl_conf()))
    for name in names:
        if name.startswith("gpu."):
            step(name)
            yield name, read.tried(_of_gpus, name.partition(".")[2])
    step("tmpfiles.d")
    lines = _lines("tmpfiles.d") if paths else []
    for path in paths:
        late = boot_scripts.sets_file(path, scripts)
        yield "tmpfiles." + path, read.value(late) if late else _dated(tmpfiles_winner(path, lines), booted)


def _of_gpus(setting):
    found = boot_scripts.of_gpus(setting)
    return read.value(found) if found else read.absent("no unit, script, cron table or udev rule sets it at boot")


def _dated(fact, booted):
    """Mark a line whose file has been as it is since before the boot."""
    try:
        old = "value" in fact and booted and os.stat(read.ROOT + fact["value"]["file"]).st_ctime < int(booted.group(1))
    except OSError:
        return fact
    return read.value(dict(fact["value"], at_boot=True)) if old else fact


def _lines(kind):
    """Return (file, line number, text) of every setting in the order of application, or the error."""
    contents = read.contents_that_win(read.config_folders(kind))
    if isinstance(contents, dict):
        return contents
    return [line for path, content in contents for line in _settings(path, content)]


def _settings(path, content):
    for number, line in enumerate(LINE_END.split(content), 1):
        if line.strip() and line.strip()[0] not in "#;":
            yield path, number, line.strip()


def _sysctl_conf():
    """Return {name: {value, file, line}} of /etc/sysctl.conf. Raise OSError."""
    found = {}
    content = read.text(SYSCTL_CONF) if read.exists(SYSCTL_CONF) else ""
    for path, number, line in _settings(SYSCTL_CONF, content):
        key, equals, setting = line.partition("=")
        if equals:
            name = _dotted(key.strip().lstrip("-").strip())
            found[name] = {"value": read.number_or_text(setting.strip()), "file": path, "line": number}
    return found


def _read_last(scripts):
    """Return what is read after sysctl.d at each boot, by name. Raise OSError."""
    return _sysctl_conf() if tuned.reapplies_sysctl() or boot_scripts.reloads_sysctl_conf(scripts) else {}


def sysctl_winner(name, lines, last):
    """Return the line that decides for `name`: that of `last`, or the last one; a full name beats all patterns.

    `-name` without a value excludes it from patterns (and earlier lines).
    """
    if isinstance(lines, dict) or "unread" in last:
        return lines if isinstance(lines, dict) else last
    if name in last:
        return read.value(last[name])
    exact, pattern = (), None
    for path, number, line in lines:
        key, equals, setting = line.partition("=")
        key = _dotted(key.strip().lstrip("-").strip())
        found = {"value": read.number_or_text(setting.strip()), "file": path, "line": number}
        if key == name and (equals or line.startswith("-")):
            exact = (found if equals else None,)
        elif equals and _covers(key, name, "."):
            pattern = found
    best = exact[0] if exact else pattern
    return read.value(best) if best else read.absent("no sysctl.d file sets it")


def _covers(pattern, name, separator):
    """Return whether a glob pattern covers a name; its stars do not reach across separators."""
    same_depth = pattern.count(separator) == name.count(separator)
    return any(sign in pattern for sign in "*?[") and same_depth and fnmatch.fnmatchcase(name, pattern)


def _dotted(key):
    """Convert a key to dots. If its first separator is a slash, it is a path, and its dots are part of names."""
    for sign in key:
        if sign == ".":
            return key
        if sign == "/":
            return sysctl.swapped(key)
    return key


def tmpfiles_winner(path, lines):
    """Return the line that decides: the earliest line with the same path.

    Appending lines after an appending line count too. Lines that match the file by different paths (a pattern and the
    full path) are all written in order, so the last one wins.
    """
    if isinstance(lines, dict):
        return lines
    written = {}
    for source, number, line in lines:
        fields = line.split(None, 6)
        if len(fields) < 7 or fields[0][0] != "w":
            continue
        target, appends = fields[1].strip("\"'"), "+" in fields[0]
        if target not in written or (appends and written[target][0]):
            found = {"value": read.number_or_text(fields[6]), "file": source, "line": number}
            written[target] = (appends, found)
    ours = [found for target, (_, found) in written.items() if target == path or _covers(target, path, "/")]
    return read.value(ours[-1]) if ours else read.absent("no tmpfiles.d file sets it")
