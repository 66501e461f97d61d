"""Power limits and locked clocks of GPUs for the time of a measurement: a kind of setting of temporary_settings.py.

A key is `UUID/setting`. NVML does not report which clocks are locked: clocks that nodetune locked (LOCKS) are locked
again, and anything else is released.
"""

import json

from nodetune.onhost import nvml as onhost
from . import report as reporting

LOCKS = "/run/nodetune/gpu-locks.json"
"""The file of playbooks/module_utils/nodetune_host/clocks.py."""
CLOCKS = {
    "locked_clocks": ("nvmlDeviceSetGpuLockedClocks", "nvmlDeviceResetGpuLockedClocks"),
    "locked_memory_clocks": ("nvmlDeviceSetMemoryLockedClocks", "nvmlDeviceResetMemoryLockedClocks"),
}
SETTINGS = ("power_limit",) + tuple(CLOCKS)
KIND = __name__.rpartition(".")[2]
NVML = []
"""The library, once start() has loaded it in this process."""


def of_gpus(wanted, found):
    """Return {setting: value} on GPUs (gpus.Seen) as temporary_settings.held takes it. Raise MeasurementError without NVML."""
    unknown = sorted(set(wanted) - set(SETTINGS))
    if wanted and (unknown or not found or any(gpu.library is None for gpu in found)):
        raise reporting.MeasurementError("cannot set {} without NVML".format(", ".join(unknown) or "anything"))
    settings = [name for name in SETTINGS if name in wanted]
    return [(KIND, _key(gpu, name), wanted[name]) for gpu in found for name in settings]


def _key(gpu, name):
    uuid = onhost.decoded(_call(gpu.library, gpu.name, "nvmlDeviceGetUUID", gpu.handle))
    return "{}/{}".format(uuid, name)


def start():
    """Load NVML in this process: a library loaded by the parent does not work in its child."""
    try:
        library = onhost.load()
    except ImportError as problem:
        raise reporting.MeasurementError("NVML: {}".format(problem))
    _call(library, "NVML", "nvmlInit")
    NVML[:] = [library]


def current(key, _value):
    """Return {key: value} of the current settings."""
    uuid, name = key.split("/")
    if name == "power_limit":
        return {key: _call(NVML[0], uuid, "nvmlDeviceGetPowerManagementLimit", _handle(uuid))}
    return {key: _locks().get(uuid, {}).get(name)}


def put(key, value):
    """Set a limit or clocks; None releases clocks. Raise MeasurementError."""
    uuid, name = key.split("/")
    library, handle = NVML[0], _handle(uuid)
    if name == "power_limit":
        _call(library, uuid, "nvmlDeviceSetPowerManagementLimit", handle, value)
    elif isinstance(value, list):
        _call(library, uuid, CLOCKS[name][0], handle, *value)
    else:
        _call(library, uuid, CLOCKS[name][1], handle)


def _handle(uuid):
    return _call(NVML[0], uuid, "nvmlDeviceGetHandleByUUID", uuid.encode())


def _call(library, who, function, *arguments):
    try:
        return getattr(library, function)(*arguments)
    except library.NVMLError as problem:
        text = "{}: {}: {}".format(who, function, onhost.explain(problem))
        raise reporting.MeasurementError(text)


def _locks():
    try:
        with open(LOCKS) as opened:
            return json.load(opened)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as problem:
        raise reporting.MeasurementError("{}: {}: inspect the file and remove it".format(LOCKS, problem))
