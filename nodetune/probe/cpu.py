"""Processors: number, frequency policy, idle states, isolation: `cpu.*`.

Facts over CPUs are folded: one subject for all CPUs with the same value ("cpu0-255"). Facts that need a read for each
CPU (governor, epp, idle_states, throttle_events) are collected only on request.
"""

import os
import re
import struct
from collections import Counter

from nodetune.onhost import cpu_list

from . import cpu_isolation, cpu_power, read

CPUS = "/sys/devices/system/cpu"
INTEL_PSTATE = CPUS + "/intel_pstate"
LATENCY_DEVICE = "/dev/cpu_dma_latency"
CPUINFO = re.compile(
    r"^(processor|vendor_id|CPU implementer|model name|microcode|physical id|core id)[ \t]*:[ \t]*(.*)$", re.MULTILINE
)
CPUINFO_LONGEST = 8 << 20  # 1.7 KB a CPU
IMPLEMENTERS = {"0x41": "ARM", "0x4e": "NVIDIA", "0xc0": "Ampere"}

THREAD_FILES = (
    "/etc/environment",
    "/etc/profile",
    "/etc/bash.bashrc",
    "/etc/bashrc",
    "/etc/csh.cshrc",
    "/etc/security/pam_env.conf",
    "/etc/systemd/system.conf",
)
THREAD_FOLDERS = ("/etc/profile.d", "/etc/environment.d", "/etc/systemd/system.conf.d")
THREAD_SETTING = re.compile(
    r"(?<![\w${])((?:OMP|GOMP|KMP|MKL|OPENBLAS|GOTO|BLIS|NUMEXPR|VECLIB)_[A-Z_]+)"
    r"(?:=|\s+(?:DEFAULT|OVERRIDE)=|\s+)[\"']?([^\s\"';]+)"
)


def collect(names, step):
    step("/proc/cpuinfo")
    online = cpu_list.parse(read.text(CPUS + "/online"))
    processors = _processors(read.text("/proc/cpuinfo", CPUINFO_LONGEST))
    yield from _counts(online)
    yield from _identity(processors)
    yield from _topology(processors, online)
    step("CPU frequency")
    yield from _frequency()
    for name, leaf in (("governor", "scaling_governor"), ("epp", "energy_performance_preference")):
        if name in names:
            yield name, _over_cpus(online, "cpufreq/" + leaf, "no frequency control for the CPUs here")
    step("idle states")
    yield "dma_latency_us", _latency_limit()
    if "idle_states" in names:
        yield "idle_states", read.tried(_idle_states, online)
    step("thermal throttle counters")
    if "throttle_events" in names:
        yield "throttle_events", _throttle_events(processors)
    step("CPU power limits")
    yield "power_limits", read.tried(cpu_power.limits)
    step("CPU isolation")
    yield from cpu_isolation.facts()
    step("thread settings")
    yield "thread_settings", read.tried(_thread_settings)


def _processors(content):
    """Return the relevant fields of each CPU in /proc/cpuinfo."""
    found = []
    for name, setting in CPUINFO.findall(content):
        if name == "processor":
            found.append({"cpu": int(setting)})
        elif found:
            found[-1][name] = setting.strip()
    return found


def _counts(online):
    yield "count", read.value(len(online))
    yield "online", read.value(cpu_list.fold(online))
    present = read.file_fact(CPUS + "/present", cpu_list.parse)
    if "value" not in present:
        yield "offline", present
        yield "offline_count", present
        return
    offline = set(present["value"]) - set(online)
    yield "offline", read.value(cpu_list.fold(offline))
    yield "offline_count", read.value(len(offline))


def _identity(processors):
    first = processors[0] if processors else {}
    implementer = first.get("CPU implementer")
    vendor = first.get("vendor_id") or IMPLEMENTERS.get(implementer, implementer)
    yield "vendor", read.value(vendor) if vendor else read.absent("/proc/cpuinfo names no vendor")
    model = first.get("model name")
    yield "model", read.value(model) if model else read.absent("/proc/cpuinfo names no model")
    revisions = {processor["cpu"]: processor["microcode"] for processor in processors if "microcode" in processor}
    yield "microcode", _folded(revisions) if revisions else read.absent("no microcode revision on this kind of CPU")


def _topology(processors, online):
    """Yield sockets, cores and SMT, from the pair (socket, core) of each online CPU."""
    yield "smt_control", read.file_fact(CPUS + "/smt/control")
    try:
        places = _places(processors, online)
    except OSError as problem:
        for name in ("sockets", "cores", "smt"):
            yield name, read.unread("CPU topology: " + read.why(problem))
        return
    yield "sockets", read.value(len({socket for socket, _ in places}))
    yield "cores", read.value(len(set(places)))
    yield "smt", read.value(_smt(places))


def _places(processors, online):
    if processors and all("core id" in processor for processor in processors):
        return [(processor.get("physical id", "0"), processor["core id"]) for processor in processors]
    folders = ["{}/cpu{}/topology/".format(CPUS, cpu) for cpu in online]
    return [(read.text(it + "physical_package_id"), read.text(it + "thread_siblings_list")) for it in folders]


def _smt(places):
    """Return on if cores run several threads, off if one each, mixed if some cores run more than others."""
    threads = set(Counter(places).values())
    if threads == {1}:
        return "off"
    hybrid = read.exists("/sys/devices/cpu_atom")  # efficiency cores never have a second thread
    return "mixed" if 1 in threads and not hybrid else "on"


def _frequency():
    first = CPUS + "/cpufreq/policy0"
    yield "scaling_driver", read.file_fact(first + "/scaling_driver")
    yield "boost", _boost()
    yield "max_perf_pct", read.file_fact(INTEL_PSTATE + "/max_perf_pct", int)


def _boost():
    """Return whether CPUs may run above their base frequency. The two drivers have files of opposite sense."""
    inverse = read.file_fact(INTEL_PSTATE + "/no_turbo", int)
    if "value" in inverse:
        return read.value(inverse["value"] == 0)
    return read.file_fact(CPUS + "/cpufreq/boost", lambda content: int(content) == 1)


def _over_cpus(cpus, leaf, missing):
    """Read the file `leaf` of every CPU, and fold CPUs with equal content."""
    seen, problems = {}, {}
    for cpu in cpus:
        try:
            seen[cpu] = read.text("{}/cpu{}/{}".format(CPUS, cpu, leaf))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as problem:
            problems[cpu] = "{}: {}".format(leaf, read.why(problem))
    if not seen and not problems:
        return read.absent(missing)
    facts = _folded(seen)["each"]
    facts.update(_folded(problems, read.unread)["each"])
    return read.each(facts)


def _folded(by_cpu, as_fact=read.value):
    """Fold {0: "a", 1: "a", 2: "b"} into a fact for each of cpu0-1: a, cpu2: b."""
    groups = {}
    for cpu, content in by_cpu.items():
        groups.setdefault(content, []).append(cpu)
    return read.each({"cpu" + cpu_list.fold(cpus): as_fact(content) for content, cpus in groups.items()})


def _latency_limit():
    """Return the longest wake-up latency that a process has requested; 2,000,000,000 if none has.

    Opening the device for reading has no effect: it registers a request with the default value.
    """
    try:
        handle = os.open(read.ROOT + LATENCY_DEVICE, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            content = os.read(handle, 4)
        finally:
            os.close(handle)
    except FileNotFoundError:
        return read.absent()
    except OSError as problem:
        return read.unread("{}: {}".format(LATENCY_DEVICE, read.why(problem)))
    if len(content) != 4:
        return read.unread("{}: unexpected content {!r}".format(LATENCY_DEVICE, content))
    return read.value(struct.unpack("=i", content)[0])


def _idle_states(cpus):
    """Return {"C6": {"latency_us": 170, "enabled_on": "0-63"}}; an empty text if no CPU may enter the state."""
    folder = "{}/cpu{}/cpuidle/".format(CPUS, cpus[0])
    found = {}
    for state in read.names_in(folder):
        switch = CPUS + "/cpu{}/cpuidle/" + state + "/disable"
        enabled = [cpu for cpu in cpus if read.text(switch.format(cpu)) == "0"]
        latency = int(read.text(folder + state + "/latency"))
        found[read.text(folder + state + "/name")] = {"latency_us": latency, "enabled_on": cpu_list.fold(enabled)}
    return read.value(found) if found else read.absent("no CPU idle driver here")


def _throttle_events(processors):
    """Return the thermal events since boot of each package and of its core with the most."""
    found = {}
    for processor in processors:
        folder = "{}/cpu{}/thermal_throttle/".format(CPUS, processor["cpu"])
        core = read.file_fact(folder + "core_throttle_count", int)
        if "absent" in core:
            continue
        package = "package" + processor.get("physical id", "0")
        if package not in found:
            found[package] = read.file_fact(folder + "package_throttle_count", int)
        hottest = package + " hottest core"
        if core.get("value", 0) >= found.get(hottest, {}).get("value", 0):
            found[hottest] = core
    return read.each(found) if found else read.absent("this CPU counts no thermal events")


def _thread_settings():
    """Return OMP, MKL and similar settings in files that every login or service reads: {"FILE:LINE NAME": "4"}."""
    found = {}
    for path in THREAD_FILES + tuple(_files_in(THREAD_FOLDERS)):
        for number, line in read.numbered_lines(path):
            if line[:1] not in ("#", ";") and not line.startswith("unset"):
                for name, setting in THREAD_SETTING.findall(line):
                    found["{}:{} {}".format(path, number, name)] = setting
    return read.value(found)


def _files_in(folders):
    for folder in folders:
        for name in read.names_in(folder):
            if name.endswith((".sh", ".csh", ".conf")):
                yield os.path.join(folder, name)
