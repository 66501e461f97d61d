"""A kernel module: {"name", "loaded"}. State: whether it is in the kernel (built in counts)."""

import os

from .. import command
from ..problem import ChangeError

SYS = "/sys/module"
MODULES = "/lib/modules"


def read(change):
    name = change["name"].replace("-", "_")
    return os.path.isdir(os.path.join(SYS, name)) or _built_in(name)


def wanted(change, now):
    return change["loaded"]


def put(change, state):
    """Load or unload the module. Raise ChangeError if it is missing, blacklisted, in use or built in."""
    name = change["name"]
    if state:
        _load(name)
    elif _built_in(name.replace("-", "_")):
        raise ChangeError(f"{name}: built into this kernel, so it cannot be unloaded")
    else:
        # modprobe -r would also take out what this module needs and nobody uses just now: the NVIDIA driver, say
        command.run(["rmmod", name])


def show(change, state):
    return "loaded\n" if state else "not loaded\n"


def label(change):
    return "kernel module " + change["name"]


def _load(name):
    """Load the module with the blacklist, as at boot: otherwise the next boot would leave it out."""
    command.run(["modprobe", "--use-blacklist", "--", name])
    if not read({"name": name}):
        raise ChangeError(f"{name}: blacklisted in a file that `grep -r {name} /etc/modprobe.d /lib/modprobe.d` finds")


def _built_in(name):
    """Return whether the module is built in: one without parameters leaves no trace under /sys."""
    try:
        with open(os.path.join(MODULES, os.uname().release, "modules.builtin")) as lines:
            names = [os.path.basename(line.strip()) for line in lines]
    except OSError:
        return False
    return name in [each.split(".")[0].replace("-", "_") for each in names]
