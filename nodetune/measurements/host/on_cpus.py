"""Run processes on chosen CPUs, one on each at the same time, optionally with busy services meanwhile."""

import errno
import gc
import json
import os
import select
import time

from nodetune.onhost import cpu_list, files
from nodetune.onhost.worker import die_with
from . import numa
from . import report as reporting

SERVICES = "/sys/fs/cgroup/system.slice/cpuset.cpus.effective"
ISOLATED = "/sys/devices/system/cpu/isolated"
ONLINE = "/sys/devices/system/cpu/online"
ROOT_GROUP = "/sys/fs/cgroup/cgroup.procs"


def chosen(options):
    """Return the CPUs to measure: the given ones, or one of each core. Raise MeasurementError."""
    given = named("cpus", options)
    if given:
        return given
    first, others = numa.cores(sorted(numa.ALLOWED | kept_free()))
    return sorted(first + others if options.get("smt") else first)


def named(option, options):
    """Return the CPUs of an option in order; empty if not given. Raise MeasurementError."""
    given = options.get(option)
    try:
        found = cpu_list.parse(given) if isinstance(given, str) else [int(cpu) for cpu in given or []]
    except (ValueError, TypeError):
        raise reporting.MeasurementError("{} is {!r}: write CPUs as 2-7,9 or [2, 3]".format(option, given))
    return sorted(set(found))


def of_services(options):
    """Return the CPUs on which the services of this host may run, or those of the option `services`."""
    return named("services", options) or cpu_list.parse(files.text(SERVICES)) or sorted(numa.ALLOWED)


def kept_free():
    """Return the CPUs isolated at boot or closed to services: jobs run there, but this session may be unable to."""
    services = set(cpu_list.parse(files.text(SERVICES)))
    online = set(cpu_list.parse(files.text(ONLINE)))
    return (online - services if services else set()) | set(cpu_list.parse(files.text(ISOLATED)))


class Load:
    """A process for each CPU that does work(CPU), which has no end, for the time of a context."""

    def __init__(self, cpus, work):
        self._cpus, self._work = cpus, work
        self._pids = []

    def __enter__(self):
        own = os.getpid()
        for cpu in self._cpus:
            pid = os.fork()
            if pid == 0:
                _for_ever(own, self._work, cpu)
            self._pids.append(pid)
        return self

    def __exit__(self, *problem):
        for pid in self._pids:
            os.kill(pid, 9)
            os.waitpid(pid, 0)


def _for_ever(parent, work, cpu):
    try:
        die_with(parent)
        work(cpu)
    finally:
        os._exit(1)


class Tasks(Load):
    """One busy process for each CPU. The scheduler may move them, as it does the services of a host."""

    def __init__(self, cpus):
        Load.__init__(self, cpus, _busy)

    def __enter__(self):
        before = os.sched_getaffinity(0)
        try:
            run_there(self._cpus)
        except OSError as problem:
            raise reporting.MeasurementError("system tasks cannot be simulated here: {}".format(problem.strerror))
        Load.__enter__(self)
        os.sched_setaffinity(0, before)
        return self


def _busy(_cpu):
    """Work in bursts of system calls."""
    with open("/dev/zero", "rb", buffering=0) as zero:
        while True:
            zero.read(1 << 16)


def each(cpus, seconds, act):
    """Run act(CPU) in a process on each of these CPUs at once. Return {CPU: result} of those that finished in time."""
    own = os.getpid()
    go_here, go_there = os.pipe()
    readers = {}
    for cpu in cpus:
        here, there = os.pipe()
        pid = os.fork()
        if pid == 0:
            _child(own, cpu, act, (go_here, go_there), there)
        os.close(there)
        readers[here] = cpu, pid
    os.close(go_here)
    os.close(go_there)  # the children wait for this: the end of their input
    return _collect(readers, time.monotonic() + 3 * seconds + 10)


def _collect(readers, end):
    found = {}
    texts = dict.fromkeys(readers, b"")
    poll = select.poll()
    for here in readers:
        poll.register(here, select.POLLIN)
    left = set(readers)
    while left and time.monotonic() < end:
        for here, _ in poll.poll(200):
            data = os.read(here, 4096)
            texts[here] += data
            if not data:
                poll.unregister(here)
                left.discard(here)
    for here, (cpu, pid) in readers.items():
        os.close(here)
        if here not in left:
            os.waitpid(pid, 0)
        if texts[here]:
            found[cpu] = json.loads(texts[here].decode("ascii"))
    return found


def _child(parent, cpu, act, go, there):
    """Start when the other end of `go` is closed everywhere, and never return."""
    try:
        die_with(parent)
        os.close(go[1])
        os.write(there, json.dumps(_on(cpu, act, go[0])).encode("ascii"))
    finally:
        os._exit(0)


def run_there(cpus):
    """Bind this process to exactly these CPUs. Raise OSError if it may not run on all of them.

    If the cpuset of its session forbids it, it moves to the root group, as root may: it ends with the measurement.
    """
    for last in (False, True):
        try:
            os.sched_setaffinity(0, cpus)
            if os.sched_getaffinity(0) == set(cpus):
                return
        except OSError:
            if last:
                raise
        if not last and os.path.exists(ROOT_GROUP):
            with open(ROOT_GROUP, "w") as group:
                group.write(str(os.getpid()))
    raise OSError(errno.EINVAL, "its cpuset allows only some of the CPUs")


def _on(cpu, act, go):
    try:
        run_there([cpu])
    except OSError as problem:
        return {"refused": problem.strerror}
    gc.disable()
    os.read(go, 1)
    return act(cpu)


def results(cpu, runs, report):
    """Return the result of the process on a CPU in each run. If it has none, report that and return nothing."""
    found = [run[cpu] for run in runs if cpu in run]
    refused = next((each["refused"] for each in found if "refused" in each), None)
    if refused:
        report.skip("a process of this session may not run there ({}): check its cpuset".format(refused), name(cpu))
        return []
    if len(found) < len(runs):
        report.failed("its reader did not finish in time", name(cpu))
        return []
    return found


def name(cpu):
    """Return the name of a CPU in figures."""
    return "cpu{}".format(cpu)
