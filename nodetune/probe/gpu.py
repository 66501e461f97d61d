"""NVIDIA GPUs through NVML: `gpu.*`, one fact for each GPU (GPU0, GPU1 …) unless it is for the whole host.

NVML is read last, so that facts from /proc are available even if the driver hangs. A fact is read for all
GPUs before the next fact, so that a hang costs only later facts. Nothing is ever set.
"""

import errno
import json
import os
import re

from nodetune.onhost import nvml_limits
from nodetune.onhost.nvml import DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND, OF_DRIVER, OF_GPU, decoded, explain
from . import gpu_facts, gpu_processes, nvlink, nvml, read
from .gpu_facts import ON_OFF

DRIVER = "/proc/driver/nvidia"
PCI = "/sys/bus/pci/devices"
LOCKS = "/run/nodetune/gpu-locks.json"
"""The clocks that nodetune locked since boot (playbooks/module_utils/nodetune_host/clocks.py): NVML lacks them."""


def collect(names, step):
    yield from _from_proc(step)
    if "locks" in names:
        yield "locks", read.file_fact(LOCKS, _locks)
    library, problem, facts = opened(step)
    if facts:
        yield from facts
        if problem and problem.value != LIBRARY_NOT_FOUND:
            yield "library_version", _of_system(library, step, "nvmlSystemGetNVMLVersion")
        return
    try:
        yield from _with_nvml(library, names, step)
    finally:
        _shut_down(library, step)


def opened(step):
    """Return NVML's library, its error where it does not start, and the facts that say why it cannot be used."""
    step("pynvml")
    try:
        library = nvml.load()
    except ImportError as problem:
        return None, None, [("nvml", read.unread("pynvml cannot be imported: {}".format(problem)))]
    lacking = nvml_limits.lacking()
    if lacking:
        fact = read.unread("NVML was not asked: " + lacking)
        return None, None, [(name, fact) for name in ("nvml", "nvml_status", "count", "driver_version")]
    step("nvmlInit")
    try:
        library.nvmlInit()
    except library.NVMLError as problem:
        return library, problem, _without_nvml(problem)
    return library, None, []


def _shut_down(library, step):
    step("nvmlShutdown")
    try:
        library.nvmlShutdown()
    except library.NVMLError:
        pass  # all facts are out; there is nothing left to lose


def _without_nvml(problem):
    """Return the facts available without NVML, and the status for a check."""
    if problem.value == LIBRARY_NOT_FOUND:
        fact = status = read.absent("no NVML library (libnvidia-ml.so.1) on this host")
    elif problem.value == DRIVER_NOT_LOADED and not has_gpu():
        fact = status = read.absent("no NVIDIA GPU on the PCI bus")
    else:
        fact = read.unread("NVML: " + explain(problem))
        status = read.value(explain(problem)) if problem.value in OF_DRIVER else fact
    unknown = [(name, fact) for name in ("nvml", "count", "driver_version", "cuda_driver_version")]
    return [("nvml_status", status), *unknown]


def has_gpu():
    try:
        return any(
            read.text_or(PCI + "/" + bdf + "/vendor") == "0x10de"
            and read.text_or(PCI + "/" + bdf + "/class")[:4] == "0x03"
            for bdf in read.names_in(PCI)
        )
    except OSError:
        return True


def _with_nvml(library, names, step):
    yield "nvml_status", read.value("ok")
    version = _of_system(library, step, "nvmlSystemGetNVMLVersion")
    yield "nvml", version
    yield "library_version", version
    yield "driver_version", _of_system(library, step, "nvmlSystemGetDriverVersion")
    yield "cuda_driver_version", _of_system(library, step, "nvmlSystemGetCudaDriverVersion_v2", _cuda_version)
    yield "conf_compute", _of_system(library, step, "nvmlSystemGetConfComputeState", _conf_compute)
    step("nvmlDeviceGetCount")
    try:
        count = library.nvmlDeviceGetCount()
    except library.NVMLError as problem:
        yield "count", read.unread("NVML: " + explain(problem))
        return
    yield "count", read.value(count)
    devices, refused = open_all(library, count, step)
    for name, read_value in gpu_facts.FACTS:
        found = {device.name: device.fact(read_value) for device in devices}
        found.update({subject: read.unread(text) for subject, (text, _) in refused.items()})
        yield name, read.each(dict(sorted(found.items(), key=lambda pair: int(pair[0][3:]))))
        if name == "compute_running_processes" and "process_settings" in names:
            step("the settings of those processes")
            yield "process_settings", gpu_processes.settings(found)
    if "supported_clocks" in names:
        yield "supported_clocks", read.each({device.name: device.fact(_supported_clocks) for device in devices})
    for name in sorted(gpu_facts.WITHOUT_PROGRAM.keys() & set(names)):
        yield name, gpu_facts.without_program(devices, *gpu_facts.WITHOUT_PROGRAM[name])
    if "p2p" in names:
        yield "p2p", nvlink.p2p(devices)
    yield "access", read.each(_access(devices, refused))
    yield (
        "hidden",
        read.tried(_hidden, devices, step),
    )  # opens the devices that NVML leaves out: one that is broken may hang


def _locks(content):
    """Return {UUID: {setting: [lowest, highest MHz]}} without released locks."""
    found = json.loads(content)
    if not isinstance(found, dict) or not all(isinstance(its, dict) for its in found.values()):
        raise ValueError("not what nodetune writes there")
    return {
        uuid: {name: each for name, each in its.items() if isinstance(each, list) and len(each) == 2}
        for uuid, its in found.items()
    }


def _supported_clocks(device):
    memory = device.call("nvmlDeviceGetSupportedMemoryClocks")
    return read.value({"memory": sorted(memory), "sm": sorted(_sm_clocks(device, memory))})


def _sm_clocks(device, memory):
    return set().union(*(device.call("nvmlDeviceGetSupportedGraphicsClocks", clock) for clock in memory))


def _of_system(library, step, function, parse=decoded):
    if not hasattr(library, function):
        return read.unread("{}: {}".format(function, nvml.NEWER_BINDING))
    step(function)
    try:
        return read.value(parse(getattr(library, function)()))
    except library.NVMLError as problem:
        return nvml.as_fact(problem)


def _cuda_version(number):
    return "{}.{}".format(number // 1000, number % 1000 // 10)


def _conf_compute(state):
    return {
        "feature": ON_OFF.get(state.ccFeature, str(state.ccFeature)),
        "environment": state.environment,
        "developer_tools": ON_OFF.get(state.devToolsMode, str(state.devToolsMode)),
    }


def open_all(library, count, step):
    """Return the GPUs that answer and, for the others, GPU name → (reason, whether it is the GPU's fault)."""
    devices, refused = [], {}
    for index in range(count):
        name = "GPU{}".format(index)
        step("nvmlDeviceGetHandleByIndex " + name)
        try:
            devices.append(nvml.Device(library, name, library.nvmlDeviceGetHandleByIndex(index), step))
        except library.NVMLError as problem:
            text = explain(problem)
            refused[name] = ("NVML: " + text, problem.value in OF_GPU)
    return devices, refused


def _access(devices, refused):
    """Return whether each GPU answers: `ok`, or NVML's error text.

    The text is a value: a lost GPU is a fault, not a read error.
    """
    found = {device.name: read.value(device.lost or "ok") for device in devices}
    for name, (text, faulty) in refused.items():
        found[name] = read.value(text) if faulty else read.unread(text)
    return found


# From /proc, without NVML


def _from_proc(step):
    step(DRIVER)
    yield "profiling_admin_only", read.file_fact(DRIVER + "/params", _admin_only)
    yield "excluded", read.tried(_excluded)


def _admin_only(content):
    found = re.search(r"^RmProfilingAdminOnly:\s*(\d)", content, re.MULTILINE)
    if not found:
        raise ValueError("RmProfilingAdminOnly")
    return found.group(1) == "1"


def _driver_gpus():
    """Return BDF → the driver's own information about the GPU. Raise OSError."""
    return {bdf: read.text_or("{}/gpus/{}/information".format(DRIVER, bdf)) for bdf in read.names_in(DRIVER + "/gpus")}


def _excluded():
    """Return GPUs that the administrator excluded from the driver (NVreg_ExcludedGpus)."""
    return read.value([bdf.lower() for bdf, text in _driver_gpus().items() if re.search(r"GPU Excluded:\s*Yes", text)])


def _hidden(devices, step):
    """Return GPUs that the driver has but a device cgroup (of a job or container) hides from us."""
    seen = {device.fact(gpu_facts.bdf).get("value") for device in devices}
    found = []
    for bdf, text in _driver_gpus().items():
        minor = re.search(r"Device Minor:\s*(\d+)", text)
        if bdf.lower() not in seen and minor and _may_not_open("/dev/nvidia" + minor.group(1), step):
            found.append(bdf.lower())
    return read.value(found)


def _may_not_open(path, step):
    step("open " + path)
    try:
        os.close(os.open(read.ROOT + path, os.O_RDWR | os.O_CLOEXEC))
    except OSError as problem:
        return problem.errno in (errno.EPERM, errno.EACCES)
    return False
