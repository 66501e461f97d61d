"""Swap in use: {"active": false}. State: [{"device", "type", "priority"}], highest priority first.

Devices have their UUID, if any, so that a state from before a reboot identifies them. Priority -1: the
kernel chose it (it counts down from -2 in the order of swapon, so the number itself has no meaning).
"""

import os

from .. import command
from ..edits import unescaped
from ..problem import ChangeError

SWAPS = "/proc/swaps"
MEMORY = "/proc/meminfo"
BY_UUID = "/dev/disk/by-uuid"
OFF_SECONDS = 600
"""Seconds: a full swap device of tens of GiB is read page by page."""


def read(change):
    with open(SWAPS) as lines:
        rows = [line.split() for line in list(lines)[1:]]
    rows.sort(key=lambda row: -int(row[4]))
    return [{"device": _stable(unescaped(row[0])), "type": row[1], "priority": max(int(row[4]), -1)} for row in rows]


def wanted(change, now):
    if change["active"]:
        raise ChangeError("swap: it can only be switched off, and on again by a rollback")
    return []


def put(change, state):
    """Change swap. Raise ChangeError if memory is too small for the swapped data, or if a device is gone."""
    now = read(change)
    off = [each for each in now if each not in state]
    if off:
        _check_memory()
    for each in off:
        command.run(["swapoff", "--", each["device"]], seconds=OFF_SECONDS)
    for each in state:
        if each not in now:
            command.run(["swapon", "-p", str(each["priority"]), "--", each["device"]])


def show(change, state):
    return "".join(f"{each['device']} ({each['type']}, priority {each['priority']})\n" for each in state)


def label(change):
    return "swap"


def _check_memory():
    """Raise ChangeError if memory is too small: swapoff would not stop, and the kernel would kill processes."""
    with open(MEMORY) as lines:
        kib = {name: int(rest.split()[0]) for name, rest in (line.split(":") for line in lines)}
    used = kib["SwapTotal"] - kib["SwapFree"]
    if used > kib["MemAvailable"]:
        raise ChangeError(
            f"swap: {used >> 10} MiB are swapped out and only {kib['MemAvailable'] >> 10} MiB of memory are free: "
            "first end the processes that use it"
        )


def _stable(device):
    """Return the name of a device that survives a reboot, or its current name."""
    try:
        names = sorted(os.listdir(BY_UUID))
    except OSError:
        return device
    paths = [os.path.join(BY_UUID, name) for name in names]
    return next((path for path in paths if os.path.realpath(path) == os.path.realpath(device)), device)
