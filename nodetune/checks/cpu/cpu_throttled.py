"""A processor slows down again and again because it is too hot.

Why it matters: The kernel counts how often a core or a package hit its temperature limit since boot. In a server whose
cooling works the count stays at or near zero; a fan, a heat sink or a blocked air path costs clock speed, and a node that is slow for
heat slows every job that it takes part in.
Confirm by hand: grep . /sys/devices/system/cpu/cpu*/thermal_throttle/*_throttle_count | grep -v ':0$'
Side effects of the fix: The node is out of service while it is looked at.
Sources: https://docs.kernel.org/admin-guide/thermal/intel_thermal_throttle.html
"""

from __future__ import annotations

from nodetune.expect import AtMost
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

DAY = 86400


def events_a_day(facts: View) -> dict[str, float]:
    """The average since boot; less than a day counts as one."""
    days = max(1.0, facts["host.uptime_s"] / DAY)
    return {place: round(count / days, 1) for place, count in facts["cpu.throttle_events"].items()}


CHECK = Check(
    observe=events_a_day,
    needs=("cpu.throttle_events", "host.uptime_s"),
    accept=AtMost(10),
    unit="events a day since boot",
    remedy=manual(
        "Read the counters again under load: do they still rise? Look at temperatures and fans (ipmitool sdr type "
        "Temperature; ipmitool sdr type Fan), at dust and blanking panels, then at the heat sink. They start from zero "
        "at the next boot."
    ),
    severity="medium",
)
