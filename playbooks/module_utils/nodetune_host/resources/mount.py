"""An option of a mounted file system: {"mount_point", "option"}. State: which of the option and its rivals is in force.

The state does not include other options: others may change them meanwhile.
"""

from .. import command
from ..edits import bare, unescaped
from ..problem import ChangeError

MOUNTS = "/proc/self/mountinfo"
CHOICES = {
    "noatime": ("noatime", "relatime", "strictatime"),
    "relatime": ("noatime", "relatime", "strictatime"),
    "nodiscard": ("discard", "discard=sync", "nodiscard"),
    "async": ("sync", "async"),
    "barrier": ("nobarrier", "barrier=0", "barrier"),
}
"""Each option with its rivals; the last one is in force if the kernel shows none of them."""
OF_FILE_SYSTEM = ("nodiscard", "async", "barrier")
"""Options of the file system; the others belong to a single mount."""

FLAGS = ("sync", "mand", "lazytime")
"""Flags of a file system that a remount clears unless it gives them again. Other options of the file system stay."""


def read(change):
    return _in_force(mount_at(change["mount_point"]), _choices(change["option"]))


def wanted(change, now):
    return change["option"]


def put(change, state):
    """Remount with this one option changed. Raise ChangeError if the kernel or the file system refuses."""
    mounted = mount_at(change["mount_point"])
    whole = change["option"] in OF_FILE_SYSTEM
    if whole and ("ro" in mounted["options"]) != ("ro" in mounted["super"]):
        raise ChangeError(
            f"{change['mount_point']}: of the mount and its file system only one is read-only, which a remount would make of both: "
            "left alone"
        )
    given = [*mounted["options"], *(each for each in FLAGS if whole and each in mounted["super"])]
    keep = [each for each in given if each not in _choices(change["option"])]
    bind = [] if whole else ["bind"]
    # A remount sets all flags of a mount again, so they are all given. With a source, mount(8) leaves fstab out of it;
    # with bind the file system itself is not touched.
    options = ",".join(["remount"] + bind + keep + [state])
    command.run(["mount", "-o", options, "--", mounted["source"], mounted["point"]])


def show(change, state):
    return state + "\n"


def label(change):
    return f"{change['mount_point']} {change['option']}"


def _choices(option):
    if option not in CHOICES:
        raise ChangeError(f"mount option {option}: only {', '.join(sorted(CHOICES))} can be set by a remount")
    return CHOICES[option]


def _in_force(mounted, choices):
    shown = mounted["options"] + mounted["super"]
    return next((choice for choice in choices[:-1] if choice in shown), choices[-1])


def mount_at(point):
    """Return the topmost mount at this point. Raise ChangeError if nothing is mounted."""
    found = None
    with open(MOUNTS) as lines:
        for line in lines:
            left, _, right = line.partition(" - ")
            fields, of_file_system = left.split(), right.split()
            if unescaped(fields[4]) == bare(point):
                found = {
                    "point": unescaped(fields[4]),
                    "device": fields[2],
                    "options": fields[5].split(","),
                    "source": unescaped(of_file_system[1]),
                    "super": of_file_system[2].split(","),
                }
    if not found:
        raise ChangeError(f"{point}: nothing is mounted there")
    return found
