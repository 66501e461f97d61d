"""The actual clock of CPU cores with all of them busy or one alone, and their rated clock.

What: the kernel's own measure (cycles over time, averaged since its last look) of each core's clock, in GHz, while one
process a core spins. `base`, `max` and `nominal` in GHz are what the hardware states; below base under full load means
throttled: power limit, heat, a governor, or firmware. metric `single`: one core of each NUMA node alone, which should come
near `max`; `allowed` is the governor's limit, and `of_allowed` the share of it that was reached.
How: scaling_cur_freq of cpufreq; without it "cpu MHz" of /proc/cpuinfo, but not on virtual machines, where that never
changes. Plain integer work: cores that run AVX-512 or AMX all the time are slower.
Statistic: the median of the readings, which begin when the load is a second old.
Manually: turbostat --interval 1 during a load on all cores (column Bzy_MHz).
"""

import re
import statistics
import time

from nodetune.onhost import files
from nodetune.measurements.host import numa, on_cpus
from nodetune.measurements.host import report as reporting

SECONDS = 45.0
SCOPE = "host"
ORDER = 30
SUITES = {"full": {}}
TOLERANCE = {"": {"peers": 5, "baseline": 5, "drift": 1}}
SUSPECT = "{subject}: governor, power limit or cooling"
WARM_SECONDS = 1.0
BETWEEN_SECONDS = 0.25
CPUS = "/sys/devices/system/cpu/cpu{}/"


def measure(options, report):
    """Measure. Options: cpus (a list; default one per core), single (a list; default one per NUMA node), readings."""
    sides = [numa.cores(cpus)[0] for _, cpus in sorted(numa.nodes().items())]
    cpus = options.get("cpus") or sorted(cpu for cores in sides for cpu in cores)
    alone = options.get("single", [cores[0] for cores in sides if cores[0] in cpus])
    read, count = _reader(cpus), int(options.get("readings", 8))
    _under_load(report, "clock", cpus, (read, count))
    for cpu in alone:
        _under_load(report, "single", [cpu], (read, count))


def _under_load(report, metric, cpus, how):
    (read, count), readings = how, {cpu: [] for cpu in cpus}
    report.step("{} cores under load".format(len(cpus)))
    with Load(cpus):
        time.sleep(WARM_SECONDS)
        for _ in range(count):
            for cpu, ghz in read(cpus).items():
                readings[cpu].append(ghz)
            time.sleep(BETWEEN_SECONDS)
    for cpu in cpus:
        subject = "cpu{}".format(cpu)
        if readings[cpu]:
            about = dict(stated(cpu), **reached(readings[cpu], stated(cpu)))
            report.result(subject, readings[cpu], "GHz", metric=metric, cores_busy=len(cpus), **about)
        else:
            report.skip("the kernel does not report its clock", subject, metric)


def reached(readings, about):
    """Return {"of_allowed": the share of the highest allowed clock} if the kernel reports it."""
    allowed = about.get("allowed") or about.get("max")
    return {"of_allowed": round(statistics.median_high(readings) / allowed, 3)} if allowed else {}


def _reader(cpus):
    """Return a function that maps CPUs to their clocks in GHz. Raise SkipError if the kernel does not report them."""
    if _number(CPUS.format(cpus[0]) + "cpufreq/scaling_cur_freq"):
        return _by_cpufreq
    with open("/proc/cpuinfo") as file:
        text = file.read()
    if re.search(r"^flags.*\bhypervisor\b", text, re.MULTILINE):
        raise reporting.SkipError(
            "a virtual machine's kernel cannot read the clock of the cores: measure on the physical host"
        )
    if not cpuinfo(text):
        raise reporting.SkipError("this kernel reports no CPU clock (no cpufreq, no cpu MHz in /proc/cpuinfo)")
    return _by_cpuinfo


def _by_cpufreq(cpus):
    found = {cpu: _number(CPUS.format(cpu) + "cpufreq/scaling_cur_freq") for cpu in cpus}
    return {cpu: khz / 1e6 for cpu, khz in found.items() if khz}


def _by_cpuinfo(cpus):
    with open("/proc/cpuinfo") as file:
        found = cpuinfo(file.read())
    return {cpu: found[cpu] for cpu in cpus if cpu in found}


def cpuinfo(text):
    """Return {CPU: GHz} from the text of /proc/cpuinfo."""
    found = re.findall(r"^processor\s*:\s*(\d+)$.*?^cpu MHz\s*:\s*([\d.]+)$", text, re.MULTILINE | re.DOTALL)
    return {int(cpu): float(mhz) / 1000 for cpu, mhz in found}


def stated(cpu):
    """Return what hardware and kernel state about a core, in GHz: base, nominal, max; and the governor."""
    folder = CPUS.format(cpu)
    khz = {"base": "cpufreq/base_frequency", "max": "cpufreq/cpuinfo_max_freq", "allowed": "cpufreq/scaling_max_freq"}
    about = {name: _number(folder + path) / 1e6 for name, path in khz.items() if _number(folder + path)}
    nominal = _number(folder + "acpi_cppc/nominal_freq")  # in MHz
    if nominal:
        about["nominal"] = nominal / 1e3
    for name in ("scaling_driver", "scaling_governor"):
        text = files.text(folder + "cpufreq/" + name)
        if text:
            about[name] = text
    return about


def _number(path):
    text = files.text(path)
    return int(text) if text.isdigit() else 0


class Load(on_cpus.Load):
    """A process on each CPU that only computes."""

    def __init__(self, cpus):
        on_cpus.Load.__init__(self, cpus, _compute)


def _compute(cpu):
    numa.run_on([cpu])
    number = 1
    while True:
        number = number * 1103515245 + 12345 & 0x7FFFFFFF
