"""Find the udev rule that sets an attribute of a disk's queue."""

import fnmatch
import re

from . import read

PART = re.compile(r'([A-Z_]+(?:\{[^}]*\})?)\s*(==|!=|:=|\+=|=)\s*"([^"]*)"')
PASSING = ("ACTION", "SUBSYSTEM")
"""Matches that every new disk passes."""


def rules(attribute):
    """Return (file, line, {(key, operator): text}) of the rules that set ATTR{queue/ATTRIBUTE}, in udev's order."""
    found, key = [], ("ATTR{queue/" + attribute + "}", "=")
    for path, number, line in lines():
        parts = {(name, "=" if sign == ":=" else sign): text for name, sign, text in PART.findall(line)}
        if key in parts:
            found.append((path, number, parts))
    return found


def lines():
    """Return (file, line number, text) of all rules, in udev's order."""
    paths = read.first_that_wins(read.config_folders("udev/rules.d"), ".rules")
    return [(path, number, line) for path in paths for number, line in _lines(read.text_or(path))]


def _lines(content):
    """Yield (number of the first line, text) of each rule: a backslash at its end continues a line."""
    whole, first = "", 0
    for number, line in enumerate(content.splitlines(), 1):
        first = first if whole else number
        whole += line.strip()
        if whole.endswith("\\"):
            whole = whole[:-1] + " "
            continue
        if not whole.startswith("#"):
            yield first, whole
        whole = ""


def decides(found, attribute, disk, rotational):
    """Return the rule that sets the value at each boot: the last one for this disk; absent if there is none.

    A rule with a match that only udev can evaluate is not named, nor is any rule before it.
    """
    ours = [(path, number, parts) for path, number, parts in found if _covers(parts, disk, rotational) is not False]
    if not ours:
        return read.absent("no udev rule sets it")
    path, number, parts = ours[-1]
    if not _covers(parts, disk, rotational):
        return read.absent("the udev rule that sets it is unknown")
    return read.value({"value": parts["ATTR{queue/" + attribute + "}", "="], "file": path, "line": number})


def _covers(parts, disk, rotational):
    """Return whether a rule applies to this disk; None if unknown."""
    known = True
    for (key, sign), text in parts.items():
        if sign not in ("==", "!="):
            continue
        if key == "KERNEL":
            same = any(fnmatch.fnmatchcase(disk, each) for each in text.split("|"))
        elif key == "ATTR{queue/rotational}":
            same = text == str(int(rotational))
        elif key == "ENV{DEVTYPE}":
            same = text == "disk"
        elif key in PASSING:
            continue
        else:
            known = None
            continue
        if same != (sign == "=="):
            return False
    return known
