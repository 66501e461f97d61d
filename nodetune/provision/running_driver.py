"""The driver that runs on a host: who uses it, whether it is the installed one, whether it came up. Pure."""

from nodetune.api.derived import lookup
from nodetune.api.facts_view import FactAbsentError, FactsView, FactUnreadError
from nodetune.api.model import HostFacts
from nodetune.audit import gpu_users
from nodetune.foundation import text
from nodetune.provision.facts import ProvisionFacts


def in_use(facts: HostFacts) -> str:
    """Return who computes on the GPUs; empty if nobody does. Raise HostRefusedError if that is unknown.

    NVML does not answer while the library is newer than the loaded module (after an interrupted update): then processes
    that hold the devices open count.
    """
    seen = ProvisionFacts(facts)
    if "nvidia" not in seen("modules.loaded", []) and not seen("packages.running_driver"):
        return ""
    try:
        return gpu_users.users(facts)
    except FactUnreadError:
        holders = seen("packages.device_users", [])
    return text.plain(", ".join(f"{name} ({pid})" for pid, name in holders[:3]))


def takes_reboot(facts: HostFacts, driver: str) -> str:
    """Return why this host has to reboot before `driver` works; empty if it runs."""
    seen = ProvisionFacts(facts)
    loaded = seen("modules.loaded", [])
    if "nouveau" in loaded:
        return "nouveau is loaded"
    if not driver:
        return ""
    running = version(facts)
    if not running:
        return f"driver {driver} is installed but not loaded"
    return "" if running == driver else f"driver {running} is loaded, {driver} is installed"


def version(facts: HostFacts) -> str:
    """Return the version of the loaded driver; empty if none is loaded."""
    known = FactsView(facts, ("packages.running_driver", "gpu.driver_version"), lookup)
    running = known.readable("packages.running_driver")
    return str(running["version"] if running else known.readable("gpu.driver_version", ""))


def not_up(facts: HostFacts, driver: str) -> str:
    """Return what is wrong with the driver after the boot; empty if the wanted one answers."""
    why = takes_reboot(facts, driver)
    if why:
        return f"after the reboot: {why}"
    if not driver:
        return ""
    try:
        FactsView(facts, (gpu_users.NVML,), lookup)[gpu_users.NVML]
    except FactAbsentError:
        return "the driver is loaded, but its library (libnvidia-ml.so.1) is missing"
    except FactUnreadError as problem:
        return f"the driver is loaded but does not respond: {problem}"
    return ""
