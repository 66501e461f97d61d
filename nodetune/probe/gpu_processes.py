"""The limits of each program on a GPU: its CPUs, NUMA nodes, locked memory, /dev/shm. Containers are seen from outside."""

import os
import re

from . import read

MAX_PROCESSES = 64
IPC_LOCK = 14
"""CAP_IPC_LOCK of linux/capability.h: its owner may lock any memory."""

FIRST_LINE = 64
"""Bytes of numa_maps: so short a read has the kernel walk the pages of the first mapping alone, which are those of the program."""
POLICY = re.compile(r"[0-9a-f]+ (default|local|[a-z]+(?: interleave| \(many\))?(?:=[\w|]+)?:[\d,-]+)")


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
        "mems": status.get("Mems_allowed_list"),
        "policy": _policy(folder),
        "memlock": locked.group(1) if locked else None,
        "may_lock": bool(int(status.get("CapEff", "0"), 16) >> IPC_LOCK & 1),
        "shm_bytes": _shm(folder),
    }


def _policy(folder):
    """Return the memory policy of the program as the kernel writes it (`bind:1`); None if it is not to be seen."""
    try:
        with open(read.ROOT + folder + "numa_maps", "rb", buffering=0) as maps:
            found = POLICY.match(maps.read(FIRST_LINE).decode("ascii", "replace"))
    except OSError:
        return None
    return found.group(1) if found else None


def _shm(folder):
    """Return the size of the program's own /dev/shm; None if it has none, or it is not to be seen."""
    place = read.ROOT + folder + "root/dev/shm"
    try:
        seen = os.statvfs(place)
        return seen.f_blocks * seen.f_frsize if os.stat(place).st_dev != os.stat(place + "/..").st_dev else None
    except OSError:
        return None
