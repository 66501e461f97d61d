"""The driver that runs on a host: who uses it, whether it is the installed one, whether it came up. Pure."""

from __future__ import annotations

from nodetune import plan, show
from nodetune.derived import lookup
from nodetune.model import HostFacts
from nodetune.provision.seen import Seen
from nodetune.view import Missing, Unreadable, View


def in_use(facts: HostFacts) -> str:
    """Who computes on the GPUs; empty where nobody does. Raises Refused where that cannot be told.

    NVML does not answer while the library is newer than the loaded module (after an interrupted exchange): then those who
    hold the devices open are counted.
    """
    seen = Seen(facts)
    if "nvidia" not in seen("modules.loaded", []) and not seen("packages.running_driver"):
        return ""
    try:
        return plan.users(facts)
    except Unreadable:
        holders = seen("packages.device_users", [])
    return show.plain(", ".join(f"{name} ({pid})" for pid, name in holders[:3]))


def takes_reboot(facts: HostFacts, driver: str) -> str:
    """Why this host has to boot before `driver` works; empty where it runs."""
    seen = Seen(facts)
    loaded = seen("modules.loaded", [])
    if "nouveau" in loaded:
        return "nouveau is loaded"
    if not driver:
        return ""
    running = running_driver(facts)
    if not running:
        return f"driver {driver} is installed and not loaded"
    return "" if running == driver else f"driver {running} is loaded, {driver} is installed"


def running_driver(facts: HostFacts) -> str:
    """The version of the loaded driver; empty where none is."""
    known = View(facts, ("packages.running_driver", "gpu.driver_version"), lookup)
    running = known.readable("packages.running_driver")
    return str(running["version"] if running else known.readable("gpu.driver_version", ""))


def not_up(facts: HostFacts, driver: str) -> str:
    """What is wrong with the driver after the boot; empty where it is the wanted one and answers."""
    why = takes_reboot(facts, driver)
    if why:
        return f"after the boot: {why}"
    if not driver:
        return ""
    try:
        View(facts, (plan.NVML,), lookup)[plan.NVML]
    except Missing:
        return "the driver is loaded, and its library (libnvidia-ml.so.1) is not there"
    except Unreadable as problem:
        return f"the driver is loaded and does not answer: {problem}"
    return ""
