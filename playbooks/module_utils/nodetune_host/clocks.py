"""Clocks of one GPU: the settings applications_clocks, locked_clocks and locked_memory_clocks of gpu.py.

NVML can set and reset locked clocks but not read them (NVML 13). So clocks locked here are recorded until the next
boot, when locks end. Locks by others show only by their effect on a busy GPU: an idle one does not report a setting as
the reason for its clock.
"""

import json
import os
import time

from .problem import ChangeError

LOCKS = "/run/nodetune/gpu-locks.json"
SM, MEMORY = 1, 2
UNKNOWN = "unknown"
SETTLE_SECONDS = 5
"""A GPU takes a moment to leave its locked clock."""
HELD_BY_A_SETTING = 0x2
"""The bit of NVML's event reasons for application clocks and locked clocks."""


class Applications:
    def read(self, gpu):
        return [gpu("nvmlDeviceGetApplicationsClock", clock) for clock in (MEMORY, SM)]

    def resolve(self, gpu, value):
        if value != "max":
            return pair(value)
        memory = max(gpu("nvmlDeviceGetSupportedMemoryClocks"))
        return [memory, max(gpu("nvmlDeviceGetSupportedGraphicsClocks", memory))]

    def put(self, gpu, state):
        gpu("nvmlDeviceSetApplicationsClocks", *state)


class Locked:
    """Locked clocks: those set here since boot, visible ones, or "unknown", which a reset turns into "none".

    A lock set by others shows as a clock below its maximum. Its upper end is then the clock itself; the
    lower end is unknown, and a rollback uses the lowest clock, which has the same effect on a busy GPU.
    Power and heat override locks: a clock below a recorded lock does not disprove it, one above it does.
    """

    def __init__(self, clock, name, set_, reset):
        self.clock, self.name, self.set, self.reset = clock, name, set_, reset

    def read(self, gpu):
        clock = gpu("nvmlDeviceGetClockInfo", self.clock)
        known = _locks().get(gpu.uuid, {}).get(self.name, UNKNOWN)
        if isinstance(known, list) and clock <= known[1]:
            return known
        held = clock < gpu("nvmlDeviceGetMaxClockInfo", self.clock) and self._held(gpu)
        return [self._lowest(gpu, clock), clock] if held else "none" if known == "none" else UNKNOWN

    def _held(self, gpu):
        if self.clock == MEMORY:
            return gpu("nvmlDeviceGetPerformanceState") == 0
        reasons = gpu.supported("nvmlDeviceGetCurrentClocksEventReasons")
        if reasons is None:
            reasons = gpu.supported("nvmlDeviceGetCurrentClocksThrottleReasons") or 0
        return bool(reasons & HELD_BY_A_SETTING)

    def _lowest(self, gpu, clock):
        memory = gpu.supported("nvmlDeviceGetSupportedMemoryClocks") or [] if self.clock == SM else []
        return min(gpu("nvmlDeviceGetSupportedGraphicsClocks", max(memory)), default=clock) if memory else clock

    def resolve(self, gpu, value):
        """Return the clocks if the GPU supports them: for others, the driver would silently set the next lower ones."""
        if value == "none":
            return value
        least, most = pair(value)
        if least > most:
            raise ChangeError(f"GPU{gpu.index}: clocks from {least} to {most} MHz: write the lower clock first")
        known = sorted(self._supported(gpu))
        for clock in (least, most):
            if known and clock not in known:
                raise ChangeError(
                    f"GPU{gpu.index}: it has no {self.what} clock of {clock} MHz: {nearest(known, clock)}"
                )
        return [least, most]

    def _supported(self, gpu):
        """Return the clocks that the GPU supports; empty if the driver does not report them."""
        memory = gpu.supported("nvmlDeviceGetSupportedMemoryClocks") or []
        if self.clock == MEMORY:
            return memory
        return {clock for each in memory for clock in gpu.supported("nvmlDeviceGetSupportedGraphicsClocks", each) or []}

    @property
    def what(self):
        return "memory" if self.clock == MEMORY else "SM"

    def put(self, gpu, state):
        locks = _locks()
        ours = isinstance(locks.get(gpu.uuid, {}).get(self.name), list)
        if state == "none" or (state == UNKNOWN and ours):  # nothing showed before our lock
            gpu(self.reset)
        elif state != UNKNOWN:  # going back there from a release is to forget
            gpu(self.set, *state)
        locks.setdefault(gpu.uuid, {})[self.name] = state
        _remember(locks)
        deadline = time.monotonic() + SETTLE_SECONDS
        while self.read(gpu) != state and time.monotonic() < deadline:
            time.sleep(0.1)


def nearest(known, clock):
    """Describe the supported clocks nearest to an unsupported one. `known` is sorted."""
    around = [
        max((each for each in known if each < clock), default=None),
        min((each for each in known if each > clock), default=None),
    ]
    return f"use {' or '.join(str(each) for each in around if each is not None)}, of {known[0]} to {known[-1]}"


def pair(value):
    good = isinstance(value, (list, tuple)) and len(value) == 2 and all(type(each) is int for each in value)
    if not good:
        raise ChangeError(f"{value!r} is not two clocks in MHz")
    return list(value)


def _locks():
    try:
        with open(LOCKS) as opened:
            found = json.load(opened)
        return found if isinstance(found, dict) else {}
    except (OSError, ValueError):
        return {}


def _remember(locks):
    os.makedirs(os.path.dirname(LOCKS), mode=0o700, exist_ok=True)
    with open(LOCKS + ".new", "w") as opened:
        json.dump(locks, opened)
    os.rename(LOCKS + ".new", LOCKS)
