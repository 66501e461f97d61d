"""Handlers, the commands that make changed files effective. They have no state.

{"change": "run", "run": daemon-reload | daemon-reexec | update-grub | initramfs | udev-reload | restart|reload|start UNIT}

A handler runs after the changes of its group if they changed something, and after their rollback. `always`: it runs
even if nothing changed.
"""

from . import command
from .problem import ChangeError
from .resources.unit import last_words

TOOLS = {
    "daemon-reload": ((["systemctl", "daemon-reload"],), 120),
    "daemon-reexec": ((["systemctl", "daemon-reexec"],), 120),
    "udev-reload": ((["udevadm", "control", "--reload"],), 60),
    "update-grub": ((["update-grub"], ["grub2-mkconfig", "-o", "/boot/grub2/grub.cfg"]), 300),
    "initramfs": ((["update-initramfs", "-u", "-k", "all"], ["dracut", "--force", "--regenerate-all"]), 900),
}
"""Handler → its commands (the first that this host has is used), seconds."""

UNIT_SECONDS = 120


def is_handler(change):
    return change["change"] == "run"


def run(handler):
    """Run the handler. Raise ChangeError with the reason, also for a unit that does not start."""
    if handler["run"] in TOOLS:
        candidates, seconds = TOOLS[handler["run"]]
        command.run(next((argv for argv in candidates if command.find(argv[0])), candidates[0]), seconds)
        return
    verb, _, unit = handler["run"].partition(" ")
    if verb not in UNIT_VERBS or not unit:
        raise ChangeError(f"unknown handler {handler['run']!r}")
    UNIT_VERBS[verb](unit)


def makes_sense_afterwards(handler):
    """Return whether the unit of a handler still exists: after a rollback it may be gone."""
    verb, _, unit = handler["run"].partition(" ")
    try:
        return verb not in UNIT_VERBS or _property(unit, "LoadState") == "loaded"
    except ChangeError:
        return True


def _restart(unit):
    """Restart a unit that is active or failed; leave a unit alone that was not started."""
    if _property(unit, "ActiveState") == "inactive":
        return
    command.attempt(["systemctl", "reset-failed", unit])
    _systemctl("restart", unit)


def _reload(unit):
    if _property(unit, "ActiveState") == "active":
        _systemctl("reload", unit)


UNIT_VERBS = {"restart": _restart, "reload": _reload, "start": lambda unit: _systemctl("start", unit)}


def _systemctl(verb, unit):
    try:
        command.run(["systemctl", verb, unit], UNIT_SECONDS)
    except ChangeError as problem:
        raise ChangeError(f"{problem}: {last_words(unit) or 'its log is empty'}") from None


def _property(unit, name):
    return command.run(["systemctl", "show", "--value", "-p", name, unit], 20).strip()
