"""A link lost and regained its carrier again and again.

Why it matters: Each flap stalls every connection through the link for seconds, and RDMA connections over it break
and take the job with them. Cables, optics and switch ports that flap get worse.
Confirm by hand: grep . /sys/class/net/*/carrier_changes
Side effects of the fix: Work on the cable or the switch port takes the link down.
Sources: https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-class-net
"""

from nodetune.checks.network._links import in_use
from nodetune.expect import Empty
from nodetune.model import Check
from nodetune.remedies import manual
from nodetune.view import View

AT_BOOT = 12
"""Changes that firmware, driver and bonding may cause while a host starts."""


def observe(facts: View) -> dict[str, str]:
    days = facts["host.uptime_s"] / 86400
    changes = facts["net.carrier_changes"]
    return {name: _flapping(changes.get(name, 0), days) for name in in_use(facts["net.links"])}


def _flapping(changes: int, days: float) -> str:
    """More than two changes (one flap) a day, beyond what a start causes."""
    if changes <= AT_BOOT + 2 * days:
        return ""
    return f"{changes} carrier changes in {max(days, 0.1):.1f} days"


CHECK = Check(
    needs=("net.links", "net.carrier_changes", "host.uptime_s"),
    observe=observe,
    accept=Empty("no more than one flap a day"),
    remedy=manual(
        "journalctl -k | grep -i 'link' for the times; ethtool -m LINK for the light levels; swap the cable or the "
        "optics with those of a good link and see which side the flaps follow."
    ),
    severity="medium",
)
