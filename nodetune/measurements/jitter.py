"""Time that the operating system takes a core away from a program that only reads the clock.

What: a process pinned to each core reads the clock without pause, all cores at once. A gap is the time between two
readings. metric `longest`: the longest gap in µs; `p999`: the gap that one of a thousand readings exceeds, in µs;
`lost`: the share of time spent in gaps, in % (all that the core did for others: timer ticks, interrupts, other processes,
firmware, and on a virtual machine the hypervisor, whose share is in `steal_ms` as far as it reports it).
Floor: the reader is a Python loop, two readings are 50 to 150 ns apart (`floor_ns`), and only what takes more than three
times that counts as a gap. Where p999 is below, it is given as that limit (`at_most`).
How: one process a core (or all logical CPUs, option smt), SECONDS_A_SAMPLE each, repeated; the measuring itself leaves no
core idle for the system's own work, as a job that uses all cores does not either.
Under load (option `load`; alone where CPUs are kept free of system tasks): the same while as many busy tasks as there are
CPUs run wherever system.slice lets its services run (cpuset.cpus.effective; everywhere without one). CPUs that are
isolated from system tasks stay as they are; others lose half of their time. about["load"] distinguishes these figures.
Statistic: `longest` is the largest of the repeats, `p999` and `lost` their median.
Manually: osnoise or hwnoise (rtla hwnoise -c CPUS -d 10s), cyclictest -m -a -t.
"""

import itertools
import os
import resource
import statistics
import time

from nodetune.measurements.host import on_cpus

SECONDS = 45.0
SCOPE = "host"
ORDER = 20
SUITES = {"full": {}}
TOLERANCE = {"": {"peers": 900, "baseline": 400, "drift": 50}}
SUSPECT = "what else runs on {subject}: interrupts, daemons, a hypervisor"
FINDS_OTHERS = True
SECONDS_A_SAMPLE = 1.0
GAP = 3.0
MAX_KEPT = 50000


def measure(options, report):
    """Measure.

    Options: seconds (a sample), repeats, cpus (a list, or a text such as "2-7"), smt (True: all logical CPUs), load (True:
    under system tasks only, False: without only), services (where these run, such as "0-1").
    """
    cpus, load = on_cpus.chosen(options), options.get("load")
    if not load:
        _sample(report, cpus, options, None)
    under = cpus if load else sorted(set(cpus) & on_cpus.kept_free())
    if load or (under and load is None):
        with on_cpus.Tasks(on_cpus.of_services(options)):
            _sample(report, under, options, "system tasks")


def _sample(report, cpus, options, load):
    seconds, repeats = float(options.get("seconds", SECONDS_A_SAMPLE)), int(options.get("repeats", 3))
    stolen, runs = steal(), []
    for number in range(repeats):
        under = " under {}".format(load) if load else ""
        report.step("spinning on {} CPUs{}, {} of {}".format(len(cpus), under, number + 1, repeats))
        runs.append(spin_on(cpus, seconds))
    after = steal()
    for cpu in cpus:
        found = on_cpus.results(cpu, runs, report)
        if found:
            about = {"seconds": seconds, "steal_ms": (after.get(cpu, 0) - stolen.get(cpu, 0)) * 1000}
            _tell(report, cpu, found, dict(about, load=load) if load else about)


def _tell(report, cpu, found, about):
    subject = on_cpus.name(cpu)
    about["floor_ns"] = round(min(each["floor"] for each in found) * 1e9)
    about["preempted"] = sum(each["preempted"] for each in found)
    longest, often = [each["longest"] * 1e6 for each in found], [each["p999"] * 1e6 for each in found]
    at_most = any(each["at_most"] for each in found)
    report.result(subject, longest, "µs", "lower", metric="longest", statistic="max", **about)
    report.result(subject, often, "µs", "lower", metric="p999", at_most=at_most, **about)
    report.result(subject, [each["lost"] * 100 for each in found], "%", "lower", metric="lost", **about)


def steal():
    """Return {CPU: seconds that a hypervisor gave to others}."""
    with open("/proc/stat") as file:
        rows = [line.split() for line in file if line.startswith("cpu") and line[3].isdigit()]
    tick = os.sysconf("SC_CLK_TCK")
    return {int(row[0][3:]): int(row[8]) / tick for row in rows if len(row) > 8}


def spin_on(cpus, seconds):
    """Spin on all these CPUs at once. Return {CPU: result}, without those that did not answer in time."""
    return on_cpus.each(cpus, seconds, lambda cpu: spin(seconds))


def spin(seconds):
    """Read the clock without pause. Times in seconds."""
    clock = time.perf_counter
    readings = [clock() for _ in range(20000)]
    floor = statistics.median_high(b - a for a, b in zip(readings, readings[1:]))
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
        if len(kept) > MAX_KEPT:  # far more than a thousandth: the rest of the time need not be written down as finely
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
