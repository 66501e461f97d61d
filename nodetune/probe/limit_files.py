"""Find the systemd file that sets a daemon's limits: LimitX= of its unit, else DefaultLimitX= of the manager."""

import re

from . import read, services

UNITS = {
    "sshd": ("ssh.service", "sshd.service"),
    "slurmd": ("slurmd.service",),
    "containerd": ("containerd.service",),
    "dockerd": ("docker.service",),
    "crio": ("crio.service",),
    "kubelet": ("kubelet.service",),
}
"""Daemon → the names of the unit that runs it."""

FACTORS = "KMGTPE"


def source(daemon, item, limit):
    """Return which file sets a limit {"soft", "hard"} of a daemon; empty if none does or they cannot be read.

    A file with another value does not decide: the text says that it differs.
    """
    key = "Limit" + item.upper()
    try:
        found = _unit_setting(UNITS[daemon], key) or services.file_setting("system.conf", "Default" + key)
    except OSError:
        return ""
    if not found:
        return ""
    place = "{file} line {line}".format(**found)
    return (
        place
        if parse(found["value"]) == (limit["soft"], limit["hard"])
        else "differs from {} ({})".format(place, found["value"])
    )


def _unit_setting(names, key):
    """Return {value, file, line} of the last line of a unit and its drop-ins that sets `key`; None after an empty one."""
    found = services.last_setting(read.with_drop_ins(read.UNIT_FOLDERS, *names), key)
    return found if found and found["value"] else None


def parse(text):
    """Parse systemd's `8M`, `1024:infinity` into (soft, hard); None if it is neither."""
    first, _, second = text.partition(":")
    sides = [_side(each.strip()) for each in (first, second or first)]
    return None if None in sides else tuple(sides)


def _side(text):
    found = re.match(r"(\d+)([{}]?)$".format(FACTORS), text)
    if text == "infinity":
        return "unlimited"
    return int(found.group(1)) * 1024 ** (" " + FACTORS).index(found.group(2) or " ") if found else None
