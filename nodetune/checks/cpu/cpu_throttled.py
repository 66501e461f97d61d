"""The CPU throttles repeatedly because it is too hot.

Why it matters: The kernel counts how often a core or a package has hit its temperature limit since boot. In a server
with working cooling, the count stays at or near zero. A faulty fan, heat sink or air path lowers the clock. A throttled
node slows every job that it takes part in.
Confirm manually: grep . /sys/devices/system/cpu/cpu*/thermal_throttle/*_throttle_count | grep -v ':0$'
Side effects of the fix: The node is out of service during the inspection.
Sources: https://docs.kernel.org/admin-guide/thermal/intel_thermal_throttle.html
"""

from __future__ import annotations

from nodetune.api import AtMost, Check, FactsView, manual

DAY = 86400


def events_a_day(facts: FactsView) -> dict[str, float]:
    """Return the average since boot. Less than a day counts as one day."""
    days = max(1.0, facts["host.uptime_s"] / DAY)
    return {place: round(count / days, 1) for place, count in facts["cpu.throttle_events"].items()}


CHECK = Check(
    observe=events_a_day,
    needs=("cpu.throttle_events", "host.uptime_s"),
    accept=AtMost(10),
    unit="events a day since boot",
    remedy=manual(
        "Read the counters again under load to see whether they still rise. Check temperatures and fans (ipmitool sdr type "
        "Temperature; ipmitool sdr type Fan), then dust and blanking panels, then the heat sink. The counters restart from zero "
        "at the next boot."
    ),
    severity="medium",
    cost="hardware",
)
