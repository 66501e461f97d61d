"""Kernel parameters and their files: vm.swappiness is /proc/sys/vm/swappiness."""

ROOT = "/proc/sys/"
_SWAPPED = str.maketrans("./", "/.")


def path_of(name):
    """Return the file of a parameter. A slash in a name is a dot inside a part of it (net.ipv4.conf.eth0/1)."""
    return ROOT + swapped(name)


def name_of(path):
    """Return the parameter of a file in /proc/sys."""
    return swapped(path[len(ROOT) :])


def swapped(name):
    """Return a name with slashes for dots and dots for slashes: each way of writing it from the other."""
    return name.translate(_SWAPPED)
