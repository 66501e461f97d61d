"""The limits of each program on a GPU: its CPUs, locked memory, /dev/shm. Containers are seen from outside."""

import os
import re

from . import read

MAX_PROCESSES = 64
IPC_LOCK = 14
"""CAP_IPC_LOCK of linux/capability.h: its owner may lock any memory."""


def settings(users):
    """Return {process number: its settings} for {GPU: fact of its compute processes}; one that is gone is left out."""
    gpus_of = {}
    for gpu, fact in sorted(users.items()):
        for each in fact.get("value", ()):
            gpus_of.setdefault(each["pid"], []).append(gpu)
    found = {str(pid): _of(pid, gpus_of[pid]) for pid in sorted(gpus_of)[:MAX_PROCESSES]}
    return read.value({pid: each for pid, each in found.items() if each})


def _of(pid, gpus):
    folder = "/proc/{}/".format(pid)
    status = dict(re.findall(r"^(\w+):\s*(.*)$", read.text_or(folder + "status"), re.M))
    locked = re.search(r"^Max locked memory\s+(\w+)", read.text_or(folder + "limits"), re.M)
    if "Cpus_allowed_list" not in status:
        return None
    return {
        "name": status.get("Name", ""),
        "gpus": gpus,
        "cpus": status["Cpus_allowed_list"],
        "memlock": locked.group(1) if locked else None,
        "may_lock": bool(int(status.get("CapEff", "0"), 16) >> IPC_LOCK & 1),
        "shm_bytes": _shm(folder),
    }


def _shm(folder):
    """Return the size of the program's own /dev/shm; None if it has none, or it is not to be seen."""
    place = read.ROOT + folder + "root/dev/shm"
    try:
        seen = os.statvfs(place)
        return seen.f_blocks * seen.f_frsize if os.stat(place).st_dev != os.stat(place + "/..").st_dev else None
    except OSError:
        return None
