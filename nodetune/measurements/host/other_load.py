"""Other load on this host during a measurement: its share of the CPUs, the hypervisor's share, and the processes.

Two looks at /proc, none in between: the measurement is alone with what it measures. Busy time of all CPUs, less that of the
measurement and all that it started (the kernel sums it up when they have ended; only the process of the measurement itself
may live on), less that of kernel threads, which work for either. Interrupts are nobody's. `steal` is a share of what this host's CPUs wanted to run: a hypervisor takes nothing
from CPUs that are idle. `pressure` (PSI; not every kernel has it) and `load` (average of a minute, at the beginning)
are reported unchanged because they include the measurement itself.
"""

import collections
import os
import resource
import time

from nodetune.onhost import files

MAX_NAMED = 3
MIN_SHARE = 0.005
"""Share of all CPUs from which a process is named."""
KERNEL_THREAD = 0x00200000

Process = collections.namedtuple("Process", "start ticks name kernel parent")  # noqa: PYI024  (typing takes too long to import)


class Watch:
    """Begins now. The measurement must start its processes later, and all of them must have ended at its end."""

    def __init__(self):
        self._load = files.text("/proc/loadavg").split()
        self._start = time.monotonic()
        self._pressure = pressure()
        self._processes = processes()
        self._own = own_seconds(self._processes)
        self._times = cpu_times()

    def seen(self):
        """Return its report: JSON data with shares as fractions; empty if /proc/stat has no data."""
        now = processes()
        times, own = cpu_times(), own_seconds(now) - self._own
        spent = [after - before for before, after in zip(self._times, times)]
        if len(spent) < 8 or sum(spent) <= 0:
            return {}
        tick = os.sysconf("SC_CLK_TCK")
        seconds = time.monotonic() - self._start
        kernel, named = _who(self._processes, now, sum(spent))
        others = sum(spent[:3]) - own * tick - kernel
        wanted = sum(spent[:3]) + sum(spent[5:8])
        found = {
            "cpu": _share(others, sum(spent)),
            "steal": _share(spent[7], wanted),
            "cpu_seconds": round(max(0.0, others) / tick, 2),
            "steal_seconds": round(max(0, spent[7]) / tick, 2),
            "processes": named,
        }
        if self._load:
            found["load"] = float(self._load[0])
        if self._pressure is not None and seconds > 0:
            found["pressure"] = _share((pressure() or 0) - self._pressure, seconds * 1e6)
        return found


def _share(part, whole):
    return round(min(1.0, max(0.0, part / whole)), 3) if whole > 0 else 0.0


def own_seconds(found):
    """Return the CPU time of this process, of its children, and of all its descendants that have ended."""
    each = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    living = sum(one.ticks for one in found.values() if one.parent == os.getpid())
    return sum(one.ru_utime + one.ru_stime for one in each) + living / os.sysconf("SC_CLK_TCK")


def cpu_times():
    """Return the ticks of all CPUs: user, nice, system, idle, iowait, irq, softirq, steal."""
    first = files.text("/proc/stat").partition("\n")[0].split()
    return [int(each) for each in first[1:9]] if first[:1] == ["cpu"] else []


def pressure():
    """Return the microseconds in which some process waited for a CPU; None if the kernel does not count them."""
    first = files.text("/proc/pressure/cpu").partition("\n")[0]
    total = first.rpartition("total=")[2]
    return int(total) if total.isdigit() else None


def processes():
    """Return {process id: Process} of all visible processes."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            one = _process(entry)
            if one:
                found[int(entry)] = one
    return found


def _process(entry):
    try:
        with open("/proc/{}/stat".format(entry), "rb") as file:
            head, _, rest = file.read().rpartition(b")")
    except OSError:
        return None  # it has ended
    fields = rest.split()
    if len(fields) < 20:
        return None
    name = head.partition(b"(")[2].decode("utf-8", "backslashreplace")
    kernel, parent = bool(int(fields[6]) & KERNEL_THREAD), int(fields[1])
    return Process(int(fields[19]), int(fields[11]) + int(fields[12]), name, kernel, parent)


def _who(before, after, whole):
    """Return (the ticks of kernel threads, the other processes that took most)."""
    kernel, took = 0, []
    for pid, one in after.items():
        early = before.get(pid)
        ticks = one.ticks - (early.ticks if early and early.start == one.start else 0)
        if one.kernel:
            kernel += ticks
        elif ticks > MIN_SHARE * whole and one.parent != os.getpid():
            took.append((ticks, pid, one.name))
    named = [{"name": name, "pid": pid, "cpu": _share(ticks, whole)} for ticks, pid, name in sorted(took, reverse=True)]
    return kernel, named[:MAX_NAMED]
