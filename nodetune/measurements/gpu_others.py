"""What others did on the GPUs while they were measured, and what held their clocks down, as NVML sees it once a second.

Who computes on a GPU before we have taken it is not us; who comes after we have taken it is not either. So it holds in
containers too, where NVML's process ids are the host's and ours are not.
"""

import threading

from nodetune.onhost.nvml import EVENT_REASONS

SAMPLE_SECONDS = 1.0
IDLE = 0x001


class Watch(threading.Thread):
    """Made before the GPUs are taken, started when they are. `found`: what NVML sees (gpus.Seen)."""

    def __init__(self, found):
        threading.Thread.__init__(self, daemon=True)
        self._found = list(found)
        self._over = threading.Event()
        self._users = {gpu.name: gpu.computing() for gpu in self._found}
        self._ours = {}
        self._masks = {gpu.name: [] for gpu in self._found}

    def start(self):
        for gpu in self._found:
            self._ours[gpu.name] = set(gpu.computing()) - set(self._users[gpu.name])
        threading.Thread.start(self)

    def run(self):
        while not self._over.wait(SAMPLE_SECONDS):
            self._look()

    def _look(self):
        for gpu in self._found:
            now = gpu.computing()
            self._users[gpu.name].update((pid, now[pid]) for pid in now if pid not in self._ours[gpu.name])
            mask = gpu.event_reasons()
            if mask is not None and not mask & IDLE:
                self._masks[gpu.name].append(mask)

    def told(self):
        """Return what was seen, a line a GPU on which there was something: JSON data no deeper than the wire takes."""
        self._over.set()
        if self.is_alive():
            self.join(5.0)
            self._look()
        lines = [
            {"gpu": gpu.name, "users": _users(self._users[gpu.name]), "held": held(self._masks[gpu.name])}
            for gpu in self._found
        ]
        return [each for each in lines if each["users"] or each["held"]]


def _users(users):
    return ", ".join(words for _, words in sorted(users.items()))


def held(masks):
    """Return what held the clocks down in at least half of the looks at a GPU at work: `sw_power_cap+sync_boost`."""
    return "+".join(
        name for bit, name in EVENT_REASONS if masks and 2 * sum(1 for mask in masks if mask & bit) >= len(masks)
    )
