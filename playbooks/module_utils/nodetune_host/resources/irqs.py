"""Interrupts of network cards and GPUs, spread over the CPUs near their device: {}; as a program, it keeps them there.

State: {"0000:3b:00.0": ["16", "17", …]}: the allowed CPUs of each interrupt of a device, in the order of their numbers.
The numbers themselves change from boot to boot. It leaves alone disks (the kernel places their queues itself) and
devices that are handed to guests.

The CPUs: local to the device according to sysfs, online, and not isolated (isolcpus, nohz_full). One after the
other, second threads of cores last; devices that share CPUs continue after the previous device.
"""

import errno
import os
import socket
import stat
import struct
import sys
import time

from ..onhost import cpu_list
from ..onhost.files import text
from ..problem import ChangeError, why

PCI = "/sys/bus/pci/devices"
CPUS = "/sys/devices/system/cpu"
IRQS = "/proc/irq"
ACTIONS = "/sys/kernel/irq"
NIC_CLASSES = ("0x0200", "0x0207")
GPU_CLASSES = ("0x0300", "0x0302")
NVIDIA = "0x10de"
GUESTS = (None, "vfio-pci", "pci-stub")
LINKS = "/sys/class/net"
SHOWN = 3

RTMGRP_LINK = 1
HEAD = struct.Struct("=IHHIIBBHi")
"""struct nlmsghdr and the begin of struct ifinfomsg; the last is the number of the link."""
QUIET_SECONDS = 1
"""A card that comes up sends several events."""
LOOK_SECONDS = 300
"""A GPU has interrupts only after it is opened, which causes no event."""


def read(change):
    return {bdf: [text(_path(irq)) for irq in irqs] for bdf, irqs in devices().items()}


def wanted(change, now):
    return spread({bdf: len(places) for bdf, places in now.items()})


def moved_by_kernel(left, now):
    """Return whether they are still placed by nodetune: at each boot, and when a driver makes more of them, its unit places them again."""
    return now == wanted({}, now)


def put(change, state):
    """Place interrupts, except those that appeared or disappeared since they were read. Report errors at the end."""
    refused = []
    now = devices()
    for bdf, places in state.items():
        if bdf not in now:
            refused.append(f"{bdf} is gone")
        for irq, cpus in zip(now.get(bdf, []), places):
            if text(_path(irq)) != cpus:
                refused += _write(bdf, irq, cpus)
    if refused:
        more = f" (and {len(refused) - SHOWN} more)" if len(refused) > SHOWN else ""
        raise ChangeError(f"interrupts: {'; '.join(refused[:SHOWN])}{more}")


def show(change, state):
    return "".join(
        f"{bdf} {_name(bdf)} interrupt {number}: {cpus}\n"
        for bdf, places in state.items()
        for number, cpus in enumerate(places, 1)
    )


def label(change):
    return "interrupts of network cards and GPUs"


def _write(bdf, irq, cpus):
    try:
        with open(_path(irq), "w") as opened:
            opened.write(cpus)
    except OSError as error:
        reason = "the kernel places it itself" if error.errno == errno.EIO else why(error)
        return [f"{_name(bdf)}: interrupt {irq} to CPU {cpus}: {reason}"]
    return []


# --- where they go


def spread(counts):
    """Spread {device: number of interrupts} into {device: a CPU for each}."""
    usable = _usable()
    places, used = {}, {}
    for bdf in sorted(counts):
        cpus = tuple(near(bdf, usable))
        start = used.get(cpus, 0)
        places[bdf] = [str(cpus[(start + number) % len(cpus)]) for number in range(counts[bdf])]
        used[cpus] = start + counts[bdf]
    return places


def near(bdf, usable):
    """Return the CPUs for a device, best first; all usable ones if none of those near it is usable."""
    local = [cpu for cpu in cpu_list.parse(text(f"{PCI}/{bdf}/local_cpulist")) if cpu in usable] or usable
    return sorted(local, key=lambda cpu: (_thread(cpu, local), cpu))


def _usable():
    online = cpu_list.parse(text(CPUS + "/online"))
    apart = _apart("isolated") + _apart("nohz_full")
    return [cpu for cpu in online if cpu not in apart] or online


def _apart(name):
    return cpu_list.parse(text(f"{CPUS}/{name}").replace("(null)", ""))


def _thread(cpu, among):
    """Return 0 for the first thread of a core, 1 for the second, and so on."""
    threads = cpu_list.parse(text(f"{CPUS}/cpu{cpu}/topology/thread_siblings_list"))
    return [each for each in threads if each in among or each == cpu].index(cpu) if cpu in threads else 0


# --- what there is


def devices():
    """Return {device: its interrupts that may be moved}."""
    found = {}
    for bdf in sorted(os.listdir(PCI) if os.path.isdir(PCI) else []):
        folder = f"{PCI}/{bdf}"
        irqs = _irqs(folder) if _ours(folder) and _driver(folder) not in GUESTS else []
        if irqs:
            found[bdf] = irqs
    return found


def _ours(folder):
    kind = text(folder + "/class")[:6]
    return kind in NIC_CLASSES or (kind in GPU_CLASSES and text(folder + "/vendor") == NVIDIA)


def _driver(folder):
    try:
        return os.path.basename(os.readlink(folder + "/driver"))
    except OSError:
        return None


def _irqs(folder):
    try:
        irqs = [int(name) for name in os.listdir(folder + "/msi_irqs")]
    except FileNotFoundError:
        irqs = [int(text(folder + "/irq") or 0)]
    return [irq for irq in sorted(irqs) if irq and _handled(irq) and _movable(irq)]


def _handled(irq):
    path = f"{ACTIONS}/{irq}/actions"
    return bool(text(path)) if os.path.exists(path) else True


def _movable(irq):
    """Return whether the interrupt may be moved: newer kernels remove the write bit from those that they place."""
    try:
        return bool(os.stat(_path(irq)).st_mode & stat.S_IWUSR)
    except OSError:
        return False


def _name(bdf):
    for kind in ("net", "infiniband"):
        try:
            return sorted(os.listdir(f"{PCI}/{bdf}/{kind}"))[0]
        except (OSError, IndexError):
            continue
    return _driver(f"{PCI}/{bdf}") or bdf


def _path(irq):
    return f"{IRQS}/{irq}/smp_affinity_list"


# --- as a program


def main():
    """Place interrupts now, whenever a card comes up, and periodically, as interrupts appear late. Never end."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as events:
        events.bind((0, RTMGRP_LINK))
        place_now()
        while True:
            wait_for_card(events)
            place_now()


def place_now():
    """Place the interrupts. Print what cannot be placed, for the unit's log."""
    try:
        now = read({})
        after = wanted({}, now)
        if after != now:
            put({}, after)
    except ChangeError as problem:
        print(f"nodetune: {problem}", file=sys.stderr, flush=True)


def wait_for_card(events, seconds=LOOK_SECONDS):
    """Return after the last of a series of events of a device's link, or at the timeout."""
    seen, end = False, time.monotonic() + seconds
    while True:
        left = end - time.monotonic()
        if left <= 0:
            return
        events.settimeout(min(left, QUIET_SECONDS) if seen else left)
        try:
            seen = _is_card(events.recv(65536)) or seen
        except socket.timeout:
            return
        except OSError as error:
            if error.errno != errno.ENOBUFS:  # events were lost: something happened
                raise
            seen = True


def _is_card(message):
    """Return whether the link is a card: links of containers come and go and have no interrupts."""
    if len(message) < HEAD.size:
        return False
    number = str(HEAD.unpack_from(message)[-1])
    names = os.listdir(LINKS)
    return any(text(f"{LINKS}/{name}/ifindex") == number for name in names if os.path.exists(f"{LINKS}/{name}/device"))


if __name__ == "__main__":
    main()
