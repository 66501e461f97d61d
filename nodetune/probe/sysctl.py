"""Kernel parameters, as they are now: `sysctl.NAME`."""

import os

from . import read

ROOT = "/proc/sys"


def path_of(name):
    """Return /proc/sys/vm/swappiness for vm.swappiness. A slash is a dot inside a name (net.ipv4.conf.eth0/1)."""
    return os.path.join(ROOT, name.replace(".", "\0").replace("/", ".").replace("\0", "/"))


def collect(names, step):
    for name in names:
        step(name)
        yield name, read.file_fact(path_of(name), read.number_or_text)
