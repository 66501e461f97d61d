"""How long the operating system takes a core away from a program that does nothing but look at the clock.

What: a process pinned to each core reads the clock without pause, all cores at once. A gap is the time between two
readings. metric `longest`: the longest gap in µs; `p999`: the gap that one of a thousand readings exceeds, in µs;
`lost`: the share of time spent in gaps, in % (all that the core did for others: timer ticks, interrupts, other processes,
firmware, and on a virtual machine the hypervisor, which `steal_ms` tells apart as far as it admits it).
Floor: the reader is a Python loop, two readings are 50 to 150 ns apart (`floor_ns`), and only what takes more than three
times that counts as a gap. Where p999 is below, it is given as that limit (`at_most`).
How: one process a core (or all logical CPUs, option smt), SECONDS_A_SAMPLE each, repeated; the measuring itself leaves no
core idle for the system's own work, as a job that uses all cores does not either.
Statistic: `longest` is the largest of the repeats, `p999` and `lost` their median.
Manually: osnoise or hwnoise (rtla hwnoise -c CPUS -d 10s), cyclictest -m -a -t.
"""

import gc
import itertools
import json
import os
import resource
import select
import time

from nodetune.onhost.worker import die_with
from . import numa

SECONDS = 30.0
SCOPE = "host"
ORDER = 20
SUITES = {"full": {}}
TOLERANCE = {"": {"peers": 900, "baseline": 400, "drift": 50}}
SUSPECT = "what else runs on {subject}: interrupts, daemons, a hypervisor"
FINDS_OTHERS = True
SECONDS_A_SAMPLE = 1.0
GAP = 3.0
MOST_KEPT = 50000


def measure(options, report):
    """Measure. Options: seconds (a sample), repeats, cpus (a list), smt (True: all logical CPUs)."""
    cpus = options.get("cpus") or _cpus(bool(options.get("smt")))
    seconds, repeats = float(options.get("seconds", SECONDS_A_SAMPLE)), int(options.get("repeats", 3))
    stolen = steal()
    runs = []
    for number in range(repeats):
        report.step("spinning on {} CPUs, {} of {}".format(len(cpus), number + 1, repeats))
        runs.append(spin_on(cpus, seconds))
    after = steal()
    for cpu in cpus:
        found = [run[cpu] for run in runs if cpu in run]
        if len(found) < len(runs):
            report.failed("its reader did not come back in time", "cpu{}".format(cpu))
        else:
            _tell(report, cpu, found, (after.get(cpu, 0) - stolen.get(cpu, 0)) * 1000, seconds)


def _tell(report, cpu, found, stolen_ms, seconds):
    subject = "cpu{}".format(cpu)
    about = {
        "seconds": seconds,
        "floor_ns": round(min(each["floor"] for each in found) * 1e9),
        "steal_ms": stolen_ms,
        "preempted": sum(each["preempted"] for each in found),
    }
    longest, often = [each["longest"] * 1e6 for each in found], [each["p999"] * 1e6 for each in found]
    at_most = any(each["at_most"] for each in found)
    report.result(subject, longest, "µs", "lower", metric="longest", statistic="max", **about)
    report.result(subject, often, "µs", "lower", metric="p999", at_most=at_most, **about)
    report.result(subject, [each["lost"] * 100 for each in found], "%", "lower", metric="lost", **about)


def _cpus(smt):
    first, others = [], []
    for node in sorted(numa.nodes().items()):
        one, two = numa.cores(node[1])
        first += one
        others += two
    return sorted(first + others) if smt else sorted(first)


def steal():
    """Return {CPU: seconds that a hypervisor gave to others}."""
    with open("/proc/stat") as file:
        rows = [line.split() for line in file if line.startswith("cpu") and line[3].isdigit()]
    tick = os.sysconf("SC_CLK_TCK")
    return {int(row[0][3:]): int(row[8]) / tick for row in rows if len(row) > 8}


def spin_on(cpus, seconds):
    """Spin on all these CPUs at once. Return {CPU: result}, without those that did not answer in time."""
    own = os.getpid()
    go_here, go_there = os.pipe()
    readers = {}
    for cpu in cpus:
        here, there = os.pipe()
        pid = os.fork()
        if pid == 0:
            _child(own, cpu, seconds, (go_here, go_there), there)
        os.close(there)
        readers[here] = cpu
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
    for here, cpu in readers.items():
        os.close(here)
        if texts[here]:
            found[cpu] = json.loads(texts[here].decode("ascii"))
    while _reaped():
        pass
    return found


def _reaped():
    try:
        return os.waitpid(-1, os.WNOHANG)[0]
    except OSError:
        return 0


def _child(parent, cpu, seconds, go, there):
    """Start when nobody holds the other end of `go` any more, and never return."""
    try:
        die_with(parent)
        os.close(go[1])
        os.sched_setaffinity(0, [cpu])
        gc.disable()
        os.read(go[0], 1)
        os.write(there, json.dumps(spin(seconds)).encode("ascii"))
    finally:
        os._exit(0)


def spin(seconds):
    """Read the clock without pause. Times in seconds."""
    clock = time.perf_counter
    readings = [clock() for _ in range(20000)]
    floor = sorted(b - a for a, b in zip(readings, readings[1:]))[len(readings) // 2]
    limit, kept, count = GAP * floor, [], 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
    start = last = clock()
    end = start + seconds
    while last < end:
        for _ in itertools.repeat(None, 10000):
            now = clock()
            gap = now - last
            if gap > limit:
                kept.append(gap)
            last = now
        count += 10000
        if len(kept) > MOST_KEPT:  # far more than a thousandth: the rest of the time need not be written down as finely
            limit *= 2
            kept = [gap for gap in kept if gap > limit]
            last = clock()  # what this took is nobody's gap but ours
    found = gaps(kept, count, limit, last - start)
    found["preempted"] = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw - before
    found["floor"] = floor
    return found


def gaps(kept, count, limit, seconds):
    """Summarise `kept` gaps (those above `limit`) among `count` readings in `seconds`."""
    kept = sorted(kept)
    rare = count // 1000
    below = rare >= len(kept)
    return {
        "longest": kept[-1] if kept else limit,
        "p999": limit if below else kept[-1 - rare],
        "at_most": below,
        "lost": sum(kept) / seconds,
    }
