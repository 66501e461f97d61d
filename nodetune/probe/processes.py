"""Daemons among the processes of this host, in a unit or not. Several families use it."""

import os
import re

from . import read

DAEMONS = (
    "slurmd",
    "containerd",
    "dockerd",
    "kubelet",
    "crio",
    "sshd",
    "nvidia-persistenced",
    "nv-fabricmanager",
    "nv-hostengine",
    "dcgm-exporter",
    "nvidia-imex",
    "nvidia-cuda-mps-control",
    "nvidia-cuda-mps-server",
    "chronyd",
    "ntpd",
    "k3s",
    "rke2",
)
"""Daemons to find among the processes because they may also run outside units (in containers, started manually)."""

OF_ANYONE = ("nvidia-cuda-mps-control", "nvidia-cuda-mps-server")
"""Daemons that users may also start. All others run as root or a system account, or only share the name."""
FIRST_USER = 1000

SESSION = re.compile(r"sshd: (?!.*\[listener\])")
"""How sshd names its processes for one connection: their limits are those of a sandbox, or of a daemon that ended."""

_SEEN = {}


def running():
    """Return {daemon: [process numbers]} of DAEMONS. Raise OSError if other users' processes are hidden.

    The result is cached: several families use it, and a host with many cores has thousands of kernel threads.
    """
    if read.ROOT not in _SEEN:
        _SEEN[read.ROOT] = _look()
    return _SEEN[read.ROOT]


def _look():
    read.text("/proc/1/comm")
    short = {name[:15] for name in DAEMONS}
    found = {}
    for entry in read.names_in("/proc"):
        if entry.isdigit():
            comm = read.text_or("/proc/{}/comm".format(entry))
            if comm in short:
                name = comm if len(comm) < 15 else os.path.basename((cmdline(entry) or [comm])[0])
                if name in DAEMONS and _is_one(entry, name):
                    found.setdefault(name, []).append(int(entry))
    return {name: sorted(pids) for name, pids in found.items()}


def _is_one(pid, name):
    """Return whether a process really is the daemon, by its real user, its program and its title. A zombie does not count."""
    status = read.text_or("/proc/{}/status".format(pid))
    if re.search(r"^State:\s+Z", status, re.M) or (name == "sshd" and SESSION.match(" ".join(cmdline(pid)))):
        return False
    try:
        program = os.path.basename(os.readlink("{}/proc/{}/exe".format(read.ROOT, pid)))
    except OSError:
        program = name  # not for us to see
    owner = re.search(r"^Uid:\s+(\d+)", status, re.M)
    trusted = name in OF_ANYONE or (owner and int(owner.group(1)) < FIRST_USER)
    return bool(trusted and name in program)


def daemon(pids):
    """Return the daemon among processes of one name: the child of init, else the first."""
    return next((pid for pid in pids if _parent(pid) == "1"), pids[0])


def _parent(pid):
    """Return the number of the parent as text; empty for a process that has ended."""
    return (read.text_or("/proc/{}/stat".format(pid)).rpartition(")")[2].split() + ["", ""])[1]


def counts():
    try:
        return read.value({name: len(pids) for name, pids in running().items()})
    except FileNotFoundError:
        return read.unread(read.lacks("/proc hides other users' processes"))


def cmdline(pid):
    """Return the words of a process's command line; empty if it has ended or hides them."""
    return [word for word in read.text_or("/proc/{}/cmdline".format(pid)).strip("\0").split("\0") if word]
