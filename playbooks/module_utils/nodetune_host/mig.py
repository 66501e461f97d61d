"""MIG of one GPU: the settings mig_mode and mig_devices of gpu.py.

State: {"mode": "enabled", "instances": [{"profile": "3g.71gb", "start": 0, "compute": ["3g.71gb"]}, …]}. `mode` is what
was requested last: on Ampere it takes effect after a reset. `start` is the place in the GPU's memory slices; None if
not yet placed.
"""

import ctypes
import re

from .nvml import RefusedError
from .onhost.nvml import decoded, explain
from .problem import ChangeError

ON_OFF = ("disabled", "enabled")
RESET_REQUIRED = 16
NAME = re.compile(r"(?:(?P<compute>\d+)c\.)?(?P<gpu>(?P<slices>\d+)g\.\d+gb\S*)$")
NO_SUCH_PROFILE = (2, 3, 6)
"""Errors for profiles, which are numbered over all models: invalid (old driver), unsupported by this GPU, not found."""


class Mode:
    def read(self, gpu):
        return read(gpu)

    def after(self, now, value):
        if value not in ON_OFF:
            raise ChangeError(f"MIG mode {value!r} is neither enabled nor disabled")
        if value == now["mode"]:
            return now
        return {"mode": value, "instances": []}

    def put(self, gpu, state):
        put(gpu, state)


class Devices(Mode):
    def after(self, now, value):
        """Return instances that make up the wanted devices: the current ones if they do."""
        layout = {name: count for name, count in dict(value).items() if count}
        if folded(now)["devices"] == layout:
            return now
        mode = "enabled" if layout else now["mode"]
        return {"mode": mode, "instances": [each for name in sorted(layout) for each in _needed(name, layout[name])]}


def _needed(name, count):
    """Return the GPU instances for `count` devices.

    "2c.4g.40gb" is part of a GPU instance: each instance holds as many as fit.
    """
    parts = NAME.match(name)
    if not parts or type(count) is not int or count < 1:
        raise ChangeError(f"{name!r}: {count!r} is not a valid MIG layout: write it like {{1g.18gb: 7}}")
    share = int(parts["slices"]) // int(parts["compute"]) if parts["compute"] else 1
    if not share:
        raise ChangeError(f"{name!r} needs more slices than its GPU instance has")
    sizes = [share] * (count // share) + ([count % share] if count % share else [])
    return [{"profile": parts["gpu"], "start": None, "compute": [name] * size} for size in sizes]


def folded(state):
    """Return what users see of a state: the mode, and the number of devices by profile."""
    devices = [name for instance in state["instances"] for name in instance["compute"]]
    return {"mode": state["mode"], "devices": {name: devices.count(name) for name in sorted(set(devices))}}


def same(one, other):
    return folded(one) == folded(other)


def read(gpu):
    current, pending = gpu("nvmlDeviceGetMigMode")
    instances = [_described(gpu, *each) for each in _instances(gpu)] if current else []
    return {"mode": ON_OFF[pending], "instances": sorted(instances, key=lambda each: each["start"])}


def put(gpu, state):
    """Remove unwanted instances, set the mode, create missing ones. If this fails, restore the previous layout."""
    before = read(gpu)
    planned = placed(gpu, state["instances"]) if gpu("nvmlDeviceGetMigMode")[0] else state["instances"]
    try:
        _make(gpu, state["mode"], planned)
    except ChangeError as problem:
        raise ChangeError(f"{problem}; {_put_back(gpu, before)}") from None


def _put_back(gpu, before):
    try:
        _make(gpu.session.same_gpu(gpu.index, gpu.uuid), before["mode"], before["instances"])
    except ChangeError as problem:
        return f"the previous layout could not be restored: {problem}"
    return "the previous layout was restored"


def _make(gpu, mode, instances):
    current, pending = gpu("nvmlDeviceGetMigMode")
    if current:
        _take_down(gpu, keep=instances)
    if ON_OFF[pending] != mode:
        gpu = _switch(gpu, mode)
    if instances:
        if not gpu("nvmlDeviceGetMigMode")[0]:
            raise ChangeError(f"GPU{gpu.index}: the MIG mode needs a reset of the GPU, and instances need the mode")
        there = read(gpu)["instances"]
        _create(gpu, [each for each in placed(gpu, instances) if _plain(each) not in there])


def _switch(gpu, mode):
    """Switch the mode, and return the GPU afterwards: NVML may have reset it."""
    status = gpu("nvmlDeviceSetMigMode", ON_OFF.index(mode))
    if status not in (0, RESET_REQUIRED):
        meaning = explain(gpu.session.library.NVMLError(status))
        raise ChangeError(f"GPU{gpu.index}: MIG mode is unchanged: {meaning}")
    return gpu.session.same_gpu(gpu.index, gpu.uuid)


def _take_down(gpu, keep):
    """Remove unwanted instances without disturbing users of the others."""
    for profile, instance, info in _instances(gpu):
        if _described(gpu, profile, instance, info) in map(_plain, keep):
            continue
        for _, part, _ in _parts(gpu, instance):
            gpu.about("nvmlComputeInstanceDestroy", part)
        gpu.about("nvmlGpuInstanceDestroy", instance)


def _plain(instance):
    return {key: instance[key] for key in ("profile", "start", "compute")}


def _create(gpu, instances):
    kinds = {_name(profile): profile for profile in _profiles(gpu)}
    for each in instances:
        place = gpu.session.library.c_nvmlGpuInstancePlacement_t(each["start"], each["size"])
        made = gpu("nvmlDeviceCreateGpuInstanceWithPlacement", kinds[each["profile"]].id, ctypes.byref(place))
        numbers = {_name(part): part.id for part in _part_profiles(gpu, made)}
        for name in each["compute"]:
            if name not in numbers:
                raise ChangeError(f"GPU{gpu.index}: {each['profile']} has no part {name}: it has {', '.join(numbers)}")
            gpu.about("nvmlGpuInstanceCreateComputeInstance", made, numbers[name])


def placed(gpu, instances):
    """Give each instance a place, the largest first. Raise ChangeError if they do not fit."""
    kinds = {_name(profile): profile for profile in _profiles(gpu)}
    unknown = sorted({each["profile"] for each in instances} - set(kinds))
    if unknown:
        raise ChangeError(f"GPU{gpu.index} has no MIG profile {', '.join(unknown)}: it has {', '.join(kinds)}")
    places = {name: _places(gpu, kinds[name]) for name in {each["profile"] for each in instances}}
    choices = [[at for at in places[each["profile"]] if each["start"] in (None, at[0])] for each in instances]
    order = sorted(range(len(instances)), key=lambda number: -max((size for _, size in choices[number]), default=0))
    found = _fitted([choices[number] for number in order], [])
    if found is None:
        asked = ", ".join(each["profile"] for each in instances)
        raise ChangeError(f"GPU{gpu.index}: {asked} do not fit on it together: nothing was removed")
    return [dict(instances[number], start=at[0], size=at[1]) for number, at in zip(order, found)]


def _fitted(choices, taken):
    """Return one place for each without overlap, or None."""
    if len(taken) == len(choices):
        return taken
    for start, size in choices[len(taken)]:
        if all(start + size <= other or other + length <= start for other, length in taken):
            found = _fitted(choices, [*taken, (start, size)])
            if found is not None:
                return found
    return None


# --- what NVML lists


def _name(profile):
    return decoded(profile.name).rpartition("MIG ")[2]


def _profiles(gpu):
    count = gpu.session.library.NVML_GPU_INSTANCE_PROFILE_COUNT
    return _known(count, lambda number: gpu("nvmlDeviceGetGpuInstanceProfileInfo", number))


def _part_profiles(gpu, instance):
    count = gpu.session.library.NVML_COMPUTE_INSTANCE_PROFILE_COUNT
    return _known(count, lambda number: gpu.about("nvmlGpuInstanceGetComputeInstanceProfileInfo", instance, number, 0))


def _known(count, info):
    found = []
    for number in range(count):
        try:
            found.append(info(number))
        except RefusedError as refused:
            if refused.code not in NO_SUCH_PROFILE:
                raise
    return found


def _instances(gpu):
    """Return (profile, instance, NVML's data) of each GPU instance."""
    return _listed(
        _profiles(gpu),
        gpu.session.library.c_nvmlGpuInstance_t,
        lambda *where: gpu("nvmlDeviceGetGpuInstances", *where),
        lambda instance: gpu.about("nvmlGpuInstanceGetInfo", instance),
    )


def _parts(gpu, instance):
    return _listed(
        _part_profiles(gpu, instance),
        gpu.session.library.c_nvmlComputeInstance_t,
        lambda *where: gpu.about("nvmlGpuInstanceGetComputeInstances", instance, *where),
        lambda part: gpu.about("nvmlComputeInstanceGetInfo", part),
    )


def _listed(profiles, kind, fill, describe):
    """Return the profiles; profiles with the same id (one for each revision) are queried once."""
    found = []
    for profile in {each.id: each for each in profiles}.values():
        room = (kind * max(profile.instanceCount, 1))()
        count = ctypes.c_uint(0)
        fill(profile.id, room, ctypes.byref(count))
        found += [(profile, room[number], describe(room[number])) for number in range(count.value)]
    return found


def _described(gpu, profile, instance, info):
    parts = sorted(_parts(gpu, instance), key=lambda part: part[2].placement.start)
    return {
        "profile": _name(profile),
        "start": info.placement.start,
        "compute": [_name(part) for part, _, _ in parts],
    }


def _places(gpu, profile):
    """Return (start, size) of each place that the profile may have."""
    count = ctypes.c_uint(0)
    gpu("nvmlDeviceGetGpuInstancePossiblePlacements", profile.id, None, ctypes.byref(count))
    room = (gpu.session.library.c_nvmlGpuInstancePlacement_t * max(count.value, 1))()
    gpu("nvmlDeviceGetGpuInstancePossiblePlacements", profile.id, room, ctypes.byref(count))
    return [(room[number].start, room[number].size) for number in range(count.value)]
