"""Automatic updates may replace the GPU driver.

Why it matters: An update changes the libraries at once, but the loaded kernel module only at the next boot. Until
then, every new CUDA program fails with a driver/library version mismatch, on each node at the hour of its update.
Fabric Manager must have the driver's version and breaks the same way. On Ubuntu, unattended-upgrades takes packages of
Ubuntu only, whose names contain the branch (nvidia-driver-580-open); cuda-drivers and others of NVIDIA's repository stay.
Confirm manually: apt-config dump | grep Package-Blacklist; apt-mark showhold (RHEL: cat /etc/dnf/automatic.conf)
Side effects of the fix: Driver fixes then arrive only when you install them; unattended-upgrades still brings everything
else. The fix is for apt, and for drivers whose modules are not packages of one kernel each (linux-modules-nvidia-*).
Sources: https://documentation.ubuntu.com/server/how-to/software/automatic-updates/ ;
https://dnf.readthedocs.io/en/latest/automatic.html
"""

from __future__ import annotations

import re
from typing import Any

from nodetune.api import Check, Empty, FactsView, apt_conf
from nodetune.checks.services._units import running

TIMERS = {
    "apt": ("apt-daily-upgrade.timer",),
    "dnf": ("dnf-automatic.timer", "dnf-automatic-install.timer", "dnf5-automatic.timer"),
}

OF_UBUNTU = re.compile(r"(?!cuda-).*-\d{3}(-|$)")
"""Driver packages that Ubuntu has. Those of NVIDIA's repository with the same names give way to newer ones of Ubuntu."""


def observe(facts: FactsView) -> dict[str, str] | list[str]:
    """Find driver packages without a hold, where updates are on and a timer runs them."""
    found = {}
    ubuntu = facts.get("host.os", {}).get("id") == "ubuntu"
    for manager, timers in TIMERS.items():
        updates: dict[str, Any] = facts.get(f"updates.{manager}", {})
        active = running(facts, timers)
        if active and (updates.get("enabled") or "dnf-automatic-install.timer" in active):
            open_to = [name for name, held in updates["driver_packages"].items() if not held]
            found.update({name: f"by {active[0]}" for name in open_to if not ubuntu or OF_UBUNTU.match(name)})
    return found or []


CHECK = Check(
    needs=(
        "host.os",
        "updates.apt",
        "updates.dnf",
        *(f"services.{name}" for timers in TIMERS.values() for name in timers),
    ),
    observe=observe,
    accept=Empty("held, or excluded from automatic updates"),
    set="kept",
    remedy=apt_conf(),
    severity="medium",
    name="driver updates",
)
