"""A pynvml that answers from a recording of a real node: constants, structures and errors are those of the real one."""

import json
import types
from pathlib import Path

import pynvml

H200 = Path(__file__).parents[1] / "data" / "recordings" / "h200-x8" / "nvml.json"
NOT_SUPPORTED, INVALID_ARGUMENT = 3, 2


class Handle(int):
    """A GPU's handle: like the real one (a ctypes pointer) it has no hash."""

    __hash__ = None


class Replay:
    """`answers` by function and GPU override the recording; an int in `errors` is raised as that NVML error.

    Keys are `function`, or `function GPU3` for one GPU; a field value is `field 230 GPU3`.
    """

    def __init__(self, recording=H200, count=None, answers=None, errors=None):
        content = json.loads(Path(recording).read_text())
        self.system = content["system"]
        self.devices = [{**content["all"], **device} for device in content["devices"]][:count]
        self.answers, self.errors = answers or {}, errors or {}
        self.calls = []

    def of_system(self, function):
        self.calls.append(function)
        self._raise_wanted(function)
        return self.answers.get(function, self.system.get(function))

    def of_device(self, function, handle, *arguments):
        self.calls.append(f"{function} GPU{handle}")
        self._raise_wanted(function, handle)
        key = f"{function}({','.join(map(str, arguments))})" if arguments else function
        for wanted in (f"{key} GPU{handle}", key):
            if wanted in self.answers:
                return self.answers[wanted]
        recorded = self.devices[handle].get(key, {"error": INVALID_ARGUMENT if arguments else NOT_SUPPORTED})
        if "error" in recorded:
            raise pynvml.NVMLError(recorded["error"])
        return recorded["answer"]

    def field(self, handle, number):
        for wanted in (f"field {number} GPU{handle}", f"field {number}"):
            if wanted in self.errors:
                return None, self.errors[wanted]
            if wanted in self.answers:
                return self.answers[wanted], 0
        value = self.devices[handle]["fields"].get(str(number))
        return (None, NOT_SUPPORTED) if value is None else (value, 0)

    def _raise_wanted(self, function, handle=None):
        for key in (f"{function} GPU{handle}", function):
            if key in self.errors:
                raise pynvml.NVMLError(self.errors[key])


def _structure(answer):
    return types.SimpleNamespace(**answer) if isinstance(answer, dict) else answer


def _field_value(value, error):
    kept = types.SimpleNamespace(sllVal=value)
    return types.SimpleNamespace(nvmlReturn=error, valueType=4, value=kept)


def module(replay):
    """A module that can replace pynvml."""
    fake = types.ModuleType("pynvml")
    for name, member in vars(pynvml).items():
        if not name.startswith(("nvmlDevice", "nvmlSystem")):
            setattr(fake, name, member)

    def of_device(function):
        return lambda handle, *arguments: _structure(replay.of_device(function, handle, *arguments))

    for name in vars(pynvml):
        if name.startswith("nvmlDeviceGet"):
            setattr(fake, name, of_device(name))
        elif name.startswith("nvmlSystemGet"):
            setattr(fake, name, lambda function=name: _structure(replay.of_system(function)))
    _replace(fake, replay)
    return fake


def _replace(fake, replay):
    """The calls that do not simply ask one GPU."""
    fake.nvmlInit = lambda: replay.of_system("nvmlInit")
    fake.nvmlShutdown = lambda: replay.of_system("nvmlShutdown")
    fake.nvmlDeviceGetCount = lambda: (replay.of_system("nvmlDeviceGetCount"), len(replay.devices))[1]
    fake.nvmlDeviceGetHandleByIndex = lambda index: _handle(replay, index)
    fake.nvmlDeviceGetFieldValues = lambda handle, wanted: _fields(replay, handle, wanted)
    fake.nvmlDeviceGetSramEccErrorStatus = lambda handle, info: _fill(replay, "sram", handle, info)
    fake.nvmlDeviceGetGpuFabricInfoV = lambda handle, info: _fill(replay, "fabric", handle, info)
    fake.nvmlDeviceWorkloadPowerProfileGetCurrentProfiles = lambda handle, info: _profiles(replay, handle, info)
    fake.nvmlDeviceGetP2PStatus = lambda one, other, kind: replay.devices[one]["p2p"][str(other)][str(kind)]
    named = fake.nvmlDeviceGetName
    fake.nvmlDeviceGetName = lambda handle: handle if isinstance(handle, str) else named(handle)


def _profiles(replay, handle, info):
    """The answer is the numbers of the profiles in force."""
    answers = replay.answers
    numbers = answers.get(f"power profiles GPU{handle}", answers.get("power profiles"))
    if numbers is None:
        raise pynvml.NVMLError(NOT_SUPPORTED)
    for number in numbers:
        info._obj.enforcedProfilesMask.mask[number // 32] |= 1 << number % 32


def _handle(replay, index):
    replay._raise_wanted("nvmlDeviceGetHandleByIndex", index)
    return Handle(index)


def _fields(replay, handle, wanted):
    replay._raise_wanted("nvmlDeviceGetFieldValues", handle)
    return [_field_value(*replay.field(handle, number)) for number, _ in wanted]


def _fill(replay, what, handle, info):
    replay._raise_wanted(what, handle)
    for name, value in {**replay.devices[handle][what], **replay.answers.get(f"{what} GPU{handle}", {})}.items():
        setattr(info._obj, name, value)
