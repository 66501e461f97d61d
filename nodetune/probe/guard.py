"""The guard's memory of this machine's hardware: `guard.hardware`."""

import hashlib
import json
import os

from . import read

FOLDER = "/var/lib/nodetune/guard"
FILE = "hardware.json"
DMI = "/sys/class/dmi/id"
SERIALS = ("product_uuid", "product_serial", "board_serial")


def collect(names, step):
    path = os.path.join(FOLDER, FILE)
    step(path)
    yield "hardware", _hardware(path)


def _hardware(path):
    """Return what is remembered of this machine. Of another one it is absent: a disk may move, or be cloned."""
    found = read.file_fact(path, _parsed)
    if "value" not in found:
        return found if "unread" in found else read.absent("no guard remembers the hardware of this machine")
    try:
        here = machine()
    except OSError as problem:
        return read.unread("{}: {}".format(DMI, read.why(problem)))
    if found["value"]["machine"] != here:
        return read.absent("the guard remembers another machine")
    return found


def _parsed(content):
    """Return the memory. Raise ValueError if it is damaged."""
    found = json.loads(content)
    numbers = [found[kind] for kind in ("gpus", "adapters")] if isinstance(found, dict) else [None]
    if not all(type(each) is int and each >= 0 for each in numbers) or not isinstance(found["machine"], str):
        raise ValueError("not a memory")
    return found


def machine():
    """Return a text that another machine, or another type of virtual machine, does not have. Raise OSError."""
    parts = [_text(name) for name in ("product_name",) + SERIALS]
    if not any(parts[1:]):
        parts.append(read.text_or("/etc/machine-id"))
    return hashlib.sha256("\n".join(parts).encode("utf-8", "replace")).hexdigest()[:16]


def _text(name):
    try:
        return read.text(os.path.join(DMI, name)).strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""
