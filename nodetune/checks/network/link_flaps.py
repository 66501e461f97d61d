"""A network link goes down and up repeatedly.

Why it matters: Each flap stalls every connection on the link for seconds. RDMA connections over it break and take the
job with them. Cables, optics and switch ports that flap get worse.
Confirm manually: grep . /sys/class/net/*/carrier_changes
Side effects of the fix: Work on the cable or the switch port takes the link down.
Sources: https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-class-net
"""

from nodetune.api import Check, Empty, FactsView, manual
from nodetune.checks.shared.network_links import in_use

AT_BOOT = 12
"""Changes that firmware, driver and bonding may cause during boot."""


def observe(facts: FactsView) -> dict[str, str]:
    days = facts["host.uptime_s"] / 86400
    changes = facts["net.carrier_changes"]
    return {name: _flapping(changes.get(name, 0), days) for name in in_use(facts["net.links"])}


def _flapping(changes: int, days: float) -> str:
    """Report more than two changes (one flap) a day, beyond those at boot."""
    if changes <= AT_BOOT + 2 * days:
        return ""
    return f"{changes} carrier changes in {max(days, 0.1):.1f} days"


CHECK = Check(
    needs=("net.links", "net.carrier_changes", "host.uptime_s"),
    observe=observe,
    accept=Empty("no more than one flap a day"),
    remedy=manual(
        "journalctl -k | grep -i 'link' for the times; ethtool -m LINK for the light levels. Swap the cable or the "
        "optics with those of a good link and see which side the flaps follow."
    ),
    severity="medium",
    cost="hardware",
)
