"""Delay of a core's wake-up for a timer: idle states of the core, and other work before the wake-up.

What: a process pinned to each core sleeps until a time of the clock, and reads the clock as its first act; what is later
than that time, in µs, is its latency. metric `median`: of half the wake-ups; `p99`: exceeded by one in a hundred;
`longest`: the latest. A core that sleeps deeply wakes up late each time, so C-states show in the median; interrupts and
other programs show in p99 and longest.
How: clock_nanosleep with an absolute time and a timer slack of 1 ns, one process a core, all of them asleep in between so
that whole packages may sleep; PERIOD apart, which is long enough for the deepest states. A constant share of some µs is
the system call and Python.
Statistic: of `median` and `p99` the median of the repeats, of `longest` the largest. about: the idle driver and governor,
and the states that are on, with the latency in µs that the kernel states for each.
Manually: cyclictest -m -a -t -i 5000 -D 10 --default-system (it otherwise forbids deep states by /dev/cpu_dma_latency)
"""

import ctypes
import gc
import glob
import time

from nodetune.onhost import files
from nodetune.onhost.worker import prctl
from nodetune.measurements.host import on_cpus

SECONDS = 45.0
SCOPE = "host"
ORDER = 22
SUITES = {"full": {}}
TOLERANCE = {
    "": {"peers": 900, "baseline": 400, "drift": 50},
    "median": {"peers": 100, "baseline": 50, "drift": 20},
}
SUSPECT = "{subject}: idle states (C-states) that are on, or other work there"
FINDS_OTHERS = True
SECONDS_A_SAMPLE = 3.0
PERIOD = 0.005
PR_SET_TIMERSLACK = 29
TIMER_ABSTIME = 1
IDLE = "/sys/devices/system/cpu/cpuidle/"


class Timespec(ctypes.Structure):
    """A time for the system call."""

    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


def measure(options, report):
    """Measure. Options: seconds (a sample), repeats, period (seconds), cpus (a list, or a text such as "2-7")."""
    cpus = on_cpus.chosen(options)
    seconds, repeats = float(options.get("seconds", SECONDS_A_SAMPLE)), int(options.get("repeats", 3))
    period = float(options.get("period", PERIOD))
    runs = []
    for number in range(repeats):
        report.step("{} CPUs wake up every {:g} ms, {} of {}".format(len(cpus), period * 1e3, number + 1, repeats))
        runs.append(on_cpus.each(cpus, seconds, lambda cpu: summary(late(seconds, period))))
    for cpu in cpus:
        found = on_cpus.results(cpu, runs, report)
        if found:
            _tell(report, cpu, found, {"period": period, "wakeups": found[0]["count"]})


def _tell(report, cpu, found, about):
    subject, about = on_cpus.name(cpu), dict(about, **idle(cpu))
    for metric in ("median", "p99", "longest"):
        more = dict(about, statistic="max") if metric == "longest" else about
        report.result(subject, [each[metric] * 1e6 for each in found], "µs", "lower", metric=metric, **more)


def late(seconds, period):
    """Return by how many seconds each wake-up was late."""
    libc = ctypes.CDLL(None, use_errno=True)
    prctl(PR_SET_TIMERSLACK, 1)
    gc.disable()
    clock, monotonic = time.perf_counter, time.CLOCK_MONOTONIC
    found, end, wake = [], clock() + seconds, time.clock_gettime(monotonic)
    while clock() < end:
        wake = max(wake + period, time.clock_gettime(monotonic) + period / 2)
        until = Timespec(int(wake), int(wake % 1 * 1e9))
        if libc.clock_nanosleep(monotonic, TIMER_ABSTIME, ctypes.byref(until), None) == 0:
            found.append(max(0.0, time.clock_gettime(monotonic) - wake))
    return found


def summary(latencies):
    """Return the statistics of one sample, in seconds."""
    ordered = sorted(latencies)
    count = len(ordered)
    places = {"median": count // 2, "p99": min(count - 1, count * 99 // 100), "longest": count - 1}
    return dict({name: ordered[place] for name, place in places.items()}, count=count)


def idle(cpu):
    """Return the idle driver, its governor and the states of a CPU that are on: {name: µs that leaving it takes}."""
    found = {"idle_driver": files.text(IDLE + "current_driver"), "idle_governor": files.text(IDLE + "current_governor")}
    states = {}
    for folder in sorted(glob.glob("/sys/devices/system/cpu/cpu{}/cpuidle/state[0-9]*".format(cpu))):
        latency = files.text(folder + "/latency")
        if latency.isdigit() and files.text(folder + "/disable") == "0":
            states[files.text(folder + "/name")] = int(latency)
    return dict({name: text for name, text in found.items() if text}, **({"idle_states": states} if states else {}))
