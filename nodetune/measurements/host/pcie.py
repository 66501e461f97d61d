"""The PCIe link of a device, as good as the device and its slot support: a worse one shows as a lower share of it."""

import os

from nodetune.onhost import files

GENERATIONS = {"2.5": 1, "5.0": 2, "8.0": 3, "16.0": 4, "32.0": 5, "64.0": 6}


def link(device):
    """Return {"generation", "width"} of a device by its folder in /sys/devices; None if one of the two ends does not say."""
    ends = [_end(each) for each in (device, os.path.dirname(device)) if os.path.exists(each + "/max_link_speed")]
    if not ends or not all(generation and width for generation, width in ends):
        return None
    return {"generation": min(end[0] for end in ends), "width": min(end[1] for end in ends)}


def _end(device):
    """Return (PCIe generation, lanes) that a device supports, 0 for what it does not say."""
    speed = files.text(device + "/max_link_speed").split()
    return GENERATIONS.get(speed[0] if speed else "", 0), files.number(device + "/max_link_width") or 0
