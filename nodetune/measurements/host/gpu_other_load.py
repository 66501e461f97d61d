"""Other load on the GPUs during a measurement, and reasons for low clocks, as NVML reports them once a second.

Processes that compute on a GPU before we open it are not ours, nor are those that start afterwards. This also works in
containers, where NVML has the host's process ids and we do not. A GPU may be open since an earlier measurement (OURS).
"""

import threading

from nodetune.onhost.nvml import EVENT_REASONS

SAMPLE_SECONDS = 1.0
IDLE = 0x001

OURS = {}
"""{GPU: the ids of this process there, as NVML numbers them}: what appeared when the GPU was opened first."""


class Watch(threading.Thread):
    """Made before the GPUs are opened, started afterwards. `found`: NVML's GPUs (gpus.Seen)."""

    def __init__(self, found):
        threading.Thread.__init__(self, daemon=True)
        self._found = list(found)
        self._over = threading.Event()
        self._users = {gpu.name: _without(gpu.computing(), OURS.get(gpu.name, ())) for gpu in self._found}
        self._masks = {gpu.name: [] for gpu in self._found}

    def start(self):
        for gpu in self._found:
            OURS.setdefault(gpu.name, set(gpu.computing()) - set(self._users[gpu.name]))
        threading.Thread.start(self)

    def run(self):
        while not self._over.wait(SAMPLE_SECONDS):
            self._look()

    def _look(self):
        for gpu in self._found:
            self._users[gpu.name].update(_without(gpu.computing(), OURS[gpu.name]))
            mask = gpu.event_reasons()
            if mask is not None and not mask & IDLE:
                self._masks[gpu.name].append(mask)

    def told(self):
        """Return the observations, one entry for each GPU with any: JSON data within the protocol's depth."""
        self._over.set()
        if self.is_alive():
            self.join(5.0)
            self._look()
        lines = [
            {"gpu": gpu.name, "users": _users(self._users[gpu.name]), "held": held(self._masks[gpu.name])}
            for gpu in self._found
        ]
        return [each for each in lines if each["users"] or each["held"]]


def _without(users, ours):
    return {pid: words for pid, words in users.items() if pid not in ours}


def _users(users):
    return ", ".join(words for _, words in sorted(users.items()))


def held(masks):
    """Return the reasons for low clocks in at least half of the looks at a busy GPU: `sw_power_cap+sync_boost`."""
    return "+".join(
        name for bit, name in EVENT_REASONS if masks and 2 * sum(1 for mask in masks if mask & bit) >= len(masks)
    )
