"""The read-ahead of a network mount: {"mount_point", "kib"}. State: KiB as text.

The kernel names it by the number of the mount's device, which each mount may change.
"""

from . import mount, value


def read(change):
    return value.text_of(_path(change))


def wanted(change, now):
    return str(change["kib"])


def put(change, state):
    value.put(change, {_path(change): state})


def show(change, state):
    return state + " KiB\n"


def label(change):
    return f"{change['mount_point']} read-ahead"


def _path(change):
    return f"/sys/class/bdi/{mount.mount_at(change['mount_point'])['device']}/read_ahead_kb"
