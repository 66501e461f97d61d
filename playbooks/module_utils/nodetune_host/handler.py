"""Handlers, the commands that make changed files effective. They have no state.

{"change": "run", "run": daemon-reload | daemon-reexec | update-grub | initramfs | udev-reload |
restart|reload|start|free-cpus UNIT}

A handler runs after the changes of its group if they changed something or if what is in force is older than their
files, and after their rollback. `always`: it runs even if nothing changed. `of`: the one file whose change it is for.
"""

import glob
import os
import re

from . import boot_space, command
from .problem import ChangeError, why
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
RAM_DISKS = "/boot/init*"
MODULES = "/lib/modules"
GRUB_CONFIGS = ("/boot/grub/grub.cfg", "/boot/grub2/grub.cfg")
MODPROBE = "/etc/modprobe.d/nodetune-{}.conf"
UNITS = "/etc/systemd/system"
CPUS = "/sys/fs/cgroup/{}/cpuset.cpus"
EVERY_CPU = "/sys/fs/cgroup/cpuset.cpus.effective"


def is_handler(change):
    return change["change"] == "run"


def follows(handler, changed):
    """Return whether a handler is for one of the changed paths: no unit restarts for the file of another."""
    return handler["of"] in changed if "of" in handler else bool(changed)


def is_due(handler, changes):
    """Return whether a handler has to run though its group changed nothing: a file is right, but not in force."""
    files = [change["path"] for change in changes if change["change"] == "file" and change["content"] is not None]
    try:
        if handler["run"] == "initramfs":
            return any(os.path.getmtime(path) > os.path.getmtime(image) for path in files for image in _ram_disks())
        if handler["run"] == "daemon-reload":
            return any(_property(unit, "NeedDaemonReload") == "yes" for unit in filter(None, map(_unit_of, files)))
    except (OSError, ChangeError):
        return False
    return False


def _unit_of(path):
    """Return the unit that a file belongs to, as its own or as a drop-in; None for other files."""
    name = os.path.relpath(path, UNITS).partition("/")[0]
    return None if name == ".." else name[:-2] if name.endswith(".d") else name


def _ram_disks():
    """Return the initial RAM disks of the installed kernels: of a kernel that was removed, none is built again."""
    versions = os.listdir(MODULES) if os.path.isdir(MODULES) else []
    names = {
        f"{start}-{version}{end}" for version in versions for start, end in (("initrd.img", ""), ("initramfs", ".img"))
    }
    return [path for path in glob.glob(RAM_DISKS) if os.path.basename(path) in names]


def run(handler):
    """Run the handler. Raise ChangeError with the reason, also for a unit that does not start."""
    if handler["run"] in TOOLS:
        candidates, seconds = TOOLS[handler["run"]]
        argv = next((argv for argv in candidates if command.find(argv[0])), candidates[0])
        _require_space(handler["run"], argv[0])
        command.run(argv, seconds)
        if argv[0] == "dracut":
            _require_copies()
        return
    verb, _, unit = handler["run"].partition(" ")
    if verb not in UNIT_VERBS or not unit:
        raise ChangeError(f"unknown handler {handler['run']!r}")
    UNIT_VERBS[verb](unit)


def _require_space(name, tool):
    """Raise ChangeError where a second copy of what boots the host does not fit: a tool that runs out of space may lose it.

    grub-mkconfig copies its new menu over the old one, and dracut removes an image that it could not write.
    """
    files = {"update-grub": filter(os.path.exists, GRUB_CONFIGS), "initramfs": _ram_disks()}.get(name, ())
    for path in files:
        size = os.path.getsize(path)
        boot_space.require(tool, path, size + size // 8)


def _require_copies():
    """Raise ChangeError if a RAM disk of dracut has a module without nodetune's file for it: the module loads from there.

    Unless it makes images for this host alone, dracut leaves out all of /etc/modprobe.d.
    """
    files = {path.rpartition("nodetune-")[2][: -len(".conf")]: path for path in glob.glob(MODPROBE.format("*"))}
    for image in _ram_disks() if files and command.find("lsinitrd") else ():
        listed = command.run(["lsinitrd", image], 120)
        for module, path in sorted(files.items()):
            if path[1:] not in listed and re.search(r"/{}\.ko\b".format(re.sub("[_-]", "[_-]", module)), listed):
                raise ChangeError(
                    f'{image} has the module {module} without {path}: put install_optional_items+=" {MODPROBE.format("*")} " '
                    "into /etc/dracut.conf.d/site.conf, then run dracut --force --regenerate-all"
                )


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


def _free_cpus(unit):
    """Give a group all CPUs if no file confines it any more: the kernel refuses the empty list that systemd writes then.

    Sources: https://github.com/systemd/systemd/issues/43846 ; validate_change in
    https://github.com/torvalds/linux/blob/v6.1/kernel/cgroup/cpuset.c (ENOSPC)
    """
    path = CPUS.format(unit)
    if not os.path.exists(path) or _property(unit, "AllowedCPUs"):
        return
    try:
        with open(EVERY_CPU) as source, open(path, "r+") as target:
            if target.read().strip():
                target.write(source.read())
    except OSError as error:
        raise ChangeError(f"cannot write {path}: {why(error)}") from None


UNIT_VERBS = {
    "restart": _restart,
    "reload": _reload,
    "start": lambda unit: _systemctl("start", unit),
    "free-cpus": _free_cpus,
}


def _systemctl(verb, unit):
    try:
        command.run(["systemctl", verb, unit], UNIT_SECONDS)
    except ChangeError as problem:
        raise ChangeError(f"{problem}: {last_words(unit) or 'its log is empty'}") from None


def _property(unit, name):
    return command.run(["systemctl", "show", "--value", "-p", name, unit], 20).strip()
