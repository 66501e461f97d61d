"""The pressure, disks and network interfaces of this host during a window."""

import os
import re

from . import read

PRESSURES = ("cpu", "io", "memory")
SECTOR = 512
WRAPS = 1 << 32
"""Some counters have 32 bits."""
IB_WORD = 4
"""InfiniBand counts words of four bytes."""


def rise(before, after):
    """Return how much a counter rose, also one of 32 bits that wrapped once; None if it began again."""
    if after >= before:
        return after - before
    wrapped = after + WRAPS - before
    return wrapped if before < WRAPS and wrapped < WRAPS // 2 else None


class Host:
    """Begins now; `told` has the averages since."""

    def __init__(self):
        self._pressure, self._disks, self._links = pressure(), disks(), links()

    def told(self, seconds):
        return {
            "cpus": os.cpu_count() or 1,
            "pressure": {
                name: round(min(1.0, each / (seconds * 1e6)), 3)
                for name, each in rises(self._pressure, pressure()).items()
            },
            "disks": _by_name(rises(self._disks, disks()), seconds),
            "links": _by_name(rises(self._links, links()), seconds),
        }


def rises(before, after):
    """Return how much each counter rose; without those that appeared, went away or began again."""
    found = {key: rise(before[key], after[key]) for key in after if key in before}
    return {key: each for key, each in found.items() if each is not None}


def _by_name(found, seconds):
    """Turn {(device, kind): bytes or milliseconds} into {device: {kind: MB/s or share of the time}}."""
    told = {}
    for (device, kind), amount in sorted(found.items()):
        rate = amount / (seconds * (1e3 if kind == "busy" else 1e6))
        told.setdefault(device, {})[kind] = round(min(rate, 1.0) if kind == "busy" else rate, 3)
    return told


def pressure():
    """Return {resource: the microseconds in which some process waited for it}; without those the kernel does not count."""
    found = {}
    for name in PRESSURES:
        told = re.search(r"^some .*total=(\d+)", read.text_or("/proc/pressure/" + name), re.MULTILINE)
        if told:
            found[name] = int(told.group(1))
    return found


def disks():
    """Return {(disk, kind): counter} of physical disks."""
    found = {}
    for line in read.text_or("/proc/diskstats").splitlines():
        fields = line.split()
        if len(fields) >= 13 and read.exists("/sys/block/{}/device".format(fields[2])):
            found[fields[2], "read"] = int(fields[5]) * SECTOR
            found[fields[2], "written"] = int(fields[9]) * SECTOR
            found[fields[2], "busy"] = int(fields[12])
    return found


def links():
    """Return {(interface or port, kind): bytes} of physical interfaces and of InfiniBand ports."""
    found = {}
    for name in read.names_or_empty("/sys/class/net"):
        if read.exists("/sys/class/net/{}/device".format(name)):
            for kind, file in (("received", "rx_bytes"), ("sent", "tx_bytes")):
                _add(found, (name, kind), "/sys/class/net/{}/statistics/{}".format(name, file), 1)
    for device in read.names_or_empty("/sys/class/infiniband"):
        for port in read.names_or_empty("/sys/class/infiniband/{}/ports".format(device)):
            counters = "/sys/class/infiniband/{}/ports/{}/counters/".format(device, port)
            for kind, file in (("received", "port_rcv_data"), ("sent", "port_xmit_data")):
                _add(found, ("{}/{}".format(device, port), kind), counters + file, IB_WORD)
    return found


def _add(found, key, path, times):
    content = read.text_or(path)
    if content.isdigit():
        found[key] = int(content) * times
